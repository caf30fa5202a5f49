import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from oarlock import (
    Added,
    ControllerOwner,
    Deleted,
    Duration,
    Event,
    NoHost,
    Plugin,
    Requeue,
    Terminal,
    Updated,
    WorkKey,
    _values,
    at,
    clock,
    config,
    pointers,
)
from oarlock._values import text
from oarlock.testing import FakeHost


@pytest.fixture
def plugin() -> Plugin:
    return Plugin("test", "1.0")


def test_a_name_is_the_plural_unless_it_is_taken(plugin: Plugin) -> None:
    assert plugin.watch("v1/pods").name == "pods"
    with pytest.raises(ValueError, match="a watch of the name 'pods' already: give this one another name="):
        plugin.watch("v1/pods")
    assert plugin.watch("v1/pods", name="others").name == "others"
    assert plugin.lister("v1/pods").name == "pods"


def test_a_watch_has_handlers_or_a_reconciler(plugin: Plugin) -> None:
    handled = plugin.watch("v1/pods")

    @handled.on_add
    def added(event: Added) -> None: ...

    with pytest.raises(ValueError, match="either adds keys to the work queue or calls handlers"):
        handled.reconcile(lambda key: None)
    reconciled = plugin.watch("v1/nodes")
    reconciled.reconcile(lambda key: None)
    with pytest.raises(ValueError, match="either adds keys to the work queue or calls handlers"):
        reconciled.on_delete(lambda event: None)
    assert (plugin.handles, plugin.reconciles) == (True, True)


def test_a_function_that_cannot_be_called_is_refused_when_it_is_registered(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods")
    wrong: Any = lambda event, other: None  # noqa: E731
    message = r"on_add calls .*<lambda>\(event\), which its parameters do not fit: missing a required"
    with pytest.raises(TypeError, match=message):
        pods.on_add(wrong)
    with pytest.raises(TypeError, match=r"reconcile calls .*<lambda>\(key\)"):
        plugin.reconcile(wrong)
    with pytest.raises(TypeError, match=r"on_start calls .*<lambda>\(\)"):
        plugin.on_start(wrong)

    async def waits(event: Event) -> None: ...

    waiting: Any = waits
    with pytest.raises(TypeError, match=r"waits is async, and a plugin has no event loop"):
        pods.on_event(waiting)
    assert not plugin.handles
    pods.on_event(print)
    pods.on_synced(lambda *_: None)


def test_a_second_handler_of_a_watch_is_refused(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods")

    @pods.on_event
    def every(event: Event) -> None: ...

    with pytest.raises(ValueError, match=r"every is its on_update already"):
        pods.on_update(lambda event: None)


def test_a_subresource_cannot_be_watched(plugin: Plugin) -> None:
    with pytest.raises(ValueError, match="v1/pods/status is a subresource"):
        plugin.watch("v1/pods/status")


def test_a_key_goes_to_the_function_of_its_kind(plugin: Plugin) -> None:
    reconciled: list[str] = []
    owners = plugin.watch("apps/v1/replicasets", enqueue=ControllerOwner("apps", "Deployment"))

    @owners.reconcile
    def owner(key: WorkKey) -> None:
        reconciled.append(f"owner {key.name}")

    @plugin.schedule("report", every=60).reconcile
    def report(key: WorkKey) -> Requeue:
        reconciled.append("report")
        return Requeue(after=5)

    with pytest.raises(Terminal, match="only Deployment, report"):
        plugin.run_reconcile(WorkKey("pods"))

    @plugin.reconcile
    def other(key: WorkKey) -> None:
        reconciled.append(f"other {key.kind}")

    plugin.run_reconcile(WorkKey("Deployment", "a", "web"))
    assert plugin.run_reconcile(WorkKey("report")) == Requeue(after=5)
    plugin.run_reconcile(WorkKey("pods", "a", "web"))
    assert reconciled == ["owner web", "report", "other pods"]


def test_a_schedule_is_periodic_or_at_wall_times(plugin: Plugin) -> None:
    with pytest.raises(TypeError, match="give one of every= and cron="):
        plugin.schedule("report")
    assert plugin.schedule("nightly", cron="0 3 * * *", time_zone="Europe/Berlin").cron == "0 3 * * *"


@pytest.mark.parametrize(
    ("every", "shown"),
    [
        (0.5, "0.5"),
        (1.5, "1.5"),
        (0, "0"),
        (-1, "-1"),
        (31_536_001, "31536001"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (timedelta(milliseconds=1500), "datetime.timedelta(seconds=1, microseconds=500000)"),
    ],
)
def test_an_interval_that_is_not_whole_seconds_is_refused(
    plugin: Plugin, every: Duration, shown: str
) -> None:
    message = f"schedule 'report': every={shown} is not allowed: give whole seconds, 1 to 31536000"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        plugin.schedule("report", every=every)
    assert plugin.schedules == {}


def test_an_interval_is_whole_seconds_up_to_a_year(plugin: Plugin) -> None:
    assert plugin.schedule("often", every=1.0).every_seconds == 1
    assert plugin.schedule("seldom", every=timedelta(days=365)).every_seconds == 31_536_000


def test_a_resync_that_is_not_whole_seconds_is_refused(plugin: Plugin) -> None:
    message = r"^watch 'pods': resync=0.5 is not allowed: give whole seconds, 0 to 4294967295$"
    with pytest.raises(ValueError, match=message):
        plugin.watch("v1/pods", resync=0.5)
    assert plugin.watch("v1/pods", resync=timedelta(minutes=5)).resync_seconds == 300


def test_declared_fields_are_checked_when_the_module_is_imported(plugin: Plugin) -> None:
    @dataclass
    class Wrong:
        phase: str = ""

    with pytest.raises(TypeError, match=r"Wrong.phase has no pointer: write `phase: … = at"):
        plugin.watch("v1/pods", fields=Wrong)
    with pytest.raises(ValueError, match=r"'status.phase' is not a JSON pointer"):
        plugin.watch("v1/pods", fields=["status.phase"])
    with pytest.raises(TypeError, match=r"write \['/status/phase'\]"):
        plugin.watch("v1/pods", fields="/status/phase")
    with pytest.raises(ValueError, match="'/a~2' is not a JSON pointer"):
        at("/a~2")


def test_each_of_several_pointers_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def counted(name: str, value: Any) -> str:
        names.append(name)
        return text(name, value)

    for module in (_values, pointers):
        monkeypatch.setattr(module, "text", counted)
    assert pointers.Shape(["/a", "/b", "/c"]).pointers == ["/a", "/b", "/c"]
    assert names == ["pointer"] * 3
    with pytest.raises(TypeError, match=r"^fields\[2\]=None is not allowed: give a str$"):
        pointers.Shape(["/a", "b", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"^fields\[1\]='a.ud800' is not allowed: half of a surrogate pair"):
        pointers.Shape(["/a", "a\ud800"])
    with pytest.raises(ValueError, match=r"^'b' is not a JSON pointer to a field"):
        pointers.Shape(["/a", "b"])


def test_a_call_of_the_host_at_the_top_level_says_where_it_belongs() -> None:
    with pytest.raises(
        NoHost, match=r"Move the call into a handler, or into a function with @plugin.on_start"
    ):
        config.get("/a")
    with pytest.raises(NoHost):
        clock.now()


def test_the_start_may_change_a_declaration(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods")

    @plugin.on_start
    def start() -> None:
        pods.label_selector = config.get("/selector", "app=hello")

    with FakeHost(plugin, config={"selector": "app=web"}):
        assert pods.label_selector == "app=web"
    with FakeHost(plugin):
        assert pods.label_selector == "app=hello"


def test_types_of_events_are_those_of_the_fields(plugin: Plugin) -> None:
    """Type checkers verify this test; see the check of the SDK."""

    @dataclass
    class Pod:
        phase: str = at("/status/phase", default="")

    pods = plugin.watch("v1/pods", fields=Pod)
    seen: list[str] = []

    @pods.on_change
    def changed(event: Added[Pod] | Updated[Pod]) -> None:
        seen.append(event.fields.phase)

    @pods.on_delete
    def deleted(event: Deleted[Pod]) -> None:
        seen.append(event.fields.phase.lower())

    with FakeHost(plugin) as host:
        metadata = {"namespace": "a", "name": "b"}
        host.apply("v1/pods", {"metadata": metadata, "status": {"phase": "Running"}})
        host.delete("v1/pods", {"metadata": metadata})
    assert seen == ["Running", "running"]
