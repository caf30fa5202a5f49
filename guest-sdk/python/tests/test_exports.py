"""The exports of a component, with stand-ins for the generated bindings."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NoReturn
from unittest.mock import MagicMock

import pytest

import oarlock
from oarlock import Event, Plugin, Terminal, WorkKey
from oarlock.testing import FakeHost

IMPORTS = ["cache", "client", "clock", "config", "event", "events", "log", "metrics", "types", "work_queue"]


class Err(Exception):
    """As componentize-py has it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Failed:
    """A failure of the contract."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Retried(Failed):
    pass


class Parked(Failed):
    pass


@pytest.fixture
def exports() -> Iterator[Any]:
    """Import the module with bindings that a test makes."""
    types = MagicMock(Failure_Retry=Retried, Failure_Terminal=Parked)
    bindings = {f"wit_world.imports.{name}": MagicMock() for name in IMPORTS}
    bindings["wit_world.imports.types"] = types
    imports = MagicMock(**{name.rpartition(".")[2]: module for name, module in bindings.items()})
    bindings |= {"wit_world.imports": imports, "componentize_py_types": MagicMock(Err=Err)}
    bindings |= {name: MagicMock() for name in ["wit_world", "wit_world.exports"]}
    bindings |= {f"wit_world.exports.{name}": MagicMock() for name in ["metadata", "reconciler"]}
    sys.modules.update(bindings)
    import oarlock._exports as module

    yield module
    for name in [*bindings, "oarlock._exports", "oarlock._wit"]:
        del sys.modules[name]
    for name in ["_exports", "_wit"]:
        delattr(oarlock, name)


def leave() -> NoReturn:
    sys.exit(3)


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def give_up() -> NoReturn:
    raise Terminal("never")


ADVICE = "(it ends the call, not the plugin: raise Retry, or Terminal to park the object)"


@pytest.mark.parametrize(
    ("act", "kind", "text"),
    [
        (leave, Retried, f"SystemExit: 3 {ADVICE}"),
        (interrupt, Retried, f"KeyboardInterrupt {ADVICE}"),
        (give_up, Parked, "never"),
    ],
    ids=["exit", "interrupt", "terminal"],
)
def test_every_exception_is_a_failure_of_the_call(
    exports: Any, monkeypatch: pytest.MonkeyPatch, act: Callable[[], NoReturn], kind: type[Failed], text: str
) -> None:
    plugin = Plugin("test", "1.0")
    pods = plugin.watch("v1/pods")

    @pods.on_add
    def added(event: Event[Any]) -> None:
        act()

    @plugin.reconcile
    def reconcile(key: WorkKey) -> None:
        act()

    module: dict[str, Any] = {}
    exports.put_into(module, plugin)
    with FakeHost(plugin) as host:
        monkeypatch.setattr(exports, "WitHost", lambda: host)
        ref = SimpleNamespace(namespace="a", name="web", uid="u", resource_version="1")
        event = SimpleNamespace(subscription="pods", object=ref, fields=[], is_in_initial_list=False)
        calls: list[Callable[[], Any]] = [
            lambda: module["Handler"]().on_add(event),
            lambda: module["Reconciler"]().reconcile(SimpleNamespace(kind="pods", object=ref)),
        ]
        for call in calls:
            with pytest.raises(Err) as raised:
                call()
            assert (type(raised.value.value), raised.value.value.value) == (kind, text)
        logged = [line.message.rpartition("\n")[2] for line in host.logs]
    assert logged == ([] if kind is Parked else [text.removesuffix(f" {ADVICE}")] * 2)


def test_an_exit_in_on_start_is_an_error_of_the_description(
    exports: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin("test", "1.0")
    module: dict[str, Any] = {}
    exports.put_into(module, plugin)
    with FakeHost(plugin) as host:
        monkeypatch.setattr(exports, "WitHost", lambda: host)
        plugin.on_start(leave)
        with pytest.raises(Err, match=r"SystemExit: 3 \(it ends the call, not the plugin"):
            module["Metadata"]().describe()
