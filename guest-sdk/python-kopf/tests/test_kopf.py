"""What the examples do not show."""

# Here types are wrong on purpose.
# mypy: disable-error-code="arg-type"

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from oarlock import WorkKey
from oarlock.testing import FakeHost

import kopf
from kopf import registry
from kopf.structs import diff

PODS = {"apiVersion": "v1", "kind": "Pod"}


@pytest.fixture(autouse=True)
def _no_handlers() -> Iterator[None]:
    registry.handlers.clear()
    yield
    registry.handlers.clear()


def pod(**parts: Any) -> dict[str, Any]:
    return {
        **PODS,
        "metadata": {"namespace": "a", "name": "web", "uid": "u", "labels": {"app": "x"}},
        **parts,
    }


@pytest.mark.parametrize("name", ["on.validate", "on.mutate", "on.cleanup", "on.login", "daemon"])
def test_what_does_not_work_says_so(name: str) -> None:
    def use() -> None:
        part: Any = kopf
        for step in name.split("."):
            part = getattr(part, step)
        part("pods")

    with pytest.raises(NotImplementedError, match=f"kopf.{name} does not work in an Oarlock plugin: "):
        use()


def test_a_resource_that_is_not_built_in_must_be_named() -> None:
    @kopf.on.create("widgets")
    def create(**_: Any) -> None: ...

    with pytest.raises(ValueError, match=r'resources=\{"widgets": "GROUP/VERSION/PLURAL"\}'):
        kopf.plugin("test", "1.0")


def test_filters_select_objects_and_changes() -> None:
    called: list[str] = []

    def note(name: str, decorator: Any) -> None:
        decorator(lambda **_: called.append(name))

    on = kopf.on.create
    note("label", on("pods", labels={"app": "x"}, id="1"))
    note("present", on("v1", "pods", labels={"app": kopf.PRESENT}, id="2"))
    note("absent", on("pods", annotations={"none": kopf.ABSENT}, id="3"))
    note("other", on("pods", labels={"app": "y"}, id="4"))
    note("callback", on("pods", labels={"app": lambda value, spec, **_: value == "x" and spec}, id="5"))
    note("when", on("pods", when=lambda name, **_: name == "db", id="6"))
    note("field", on("pods", field="spec.n", value=1, id="7"))
    note("no field", on("pods", field="spec.m", id="8"))
    note("changed", kopf.on.update("pods", field="spec.n", old=1, new=2, id="9"))
    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod(spec={"n": 1}))
        host.run()
        assert called == ["label", "present", "absent", "callback", "field"]
        called.clear()
        before = host.object("v1/pods", "a", "web")
        assert before is not None
        host.apply("v1/pods", {**before, "spec": {"n": 2}})
        host.run()
        assert called == ["changed"]


def test_a_patch_changes_the_object_after_the_handlers() -> None:
    @kopf.on.create("pods")
    def create(patch: kopf.Patch, meta: kopf.Meta, **_: Any) -> None:
        patch.metadata.labels["seen"] = meta.name
        patch.spec["n"] = 2
        patch.status["ready"] = True

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod(spec={"n": 1}))
        host.run()
        after = host.object("v1/pods", "a", "web")
        assert after is not None
        assert (after["metadata"]["labels"], after["spec"]) == ({"app": "x", "seen": "web"}, {"n": 2})
        assert after["status"] == {"ready": True}


def test_a_handler_that_waits_fails_with_what_to_do() -> None:
    import asyncio

    @kopf.on.create("pods")
    async def create(**_: Any) -> None:
        await asyncio.sleep(0)

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.run()
        [error] = [line.message for line in host.logs if line.level == "error"]
        assert "raise kopf.TemporaryError with a delay, or use a timer" in error


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"interval": "60"}, "interval='60' is not allowed: give a number"),
        ({"backoff": "1s"}, "backoff='1s' is not allowed: give a number"),
        ({"idle": float("inf")}, "idle=inf is not allowed: give a finite number"),
        ({"retries": "3"}, "retries='3' is not allowed: give a number"),
        ({"timeout": "3"}, "timeout='3' is not allowed: give a number"),
        ({"id": 5}, "id=5 is not allowed: give a str"),
    ],
)
def test_an_option_of_another_type_is_refused_where_it_is_given(option: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        kopf.timer("pods", **option)(lambda **_: None)
    with pytest.raises(TypeError, match=r"^resource=5 is not allowed: give a str$"):
        kopf.on.create("v1", 5)


@pytest.mark.parametrize("option", ["interval", "initial_delay", "idle", "backoff", "timeout", "retries"])
def test_any_number_is_stored_as_a_float(option: str) -> None:
    given: Any = {option: Decimal("1.5")}
    kopf.timer("pods", **given)(lambda **_: None)
    [handler] = registry.handlers
    assert type(getattr(handler, option)) is float
    assert getattr(handler, option) == 1.5


@pytest.mark.parametrize("number", [1e12, -1e12, 1e300, Decimal("1e12"), Decimal("0.5")])
@pytest.mark.parametrize("option", ["interval", "initial_delay", "idle", "backoff", "timeout", "retries"])
def test_a_timer_runs_with_any_finite_number(option: str, number: Any) -> None:
    called: list[str] = []

    @kopf.timer("pods", **{"interval": 60, option: number})
    def tick(**_: Any) -> None:
        called.append("tick")
        raise ValueError("again")

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.advance(1)
        host.reconcile(WorkKey("pods", "a", "web"))
        errors = [line.message for line in host.logs if line.level == "error"]
    is_late = option in ("initial_delay", "idle") and number > 0
    is_over = option in ("timeout", "retries") and number < 0
    assert bool(called) == (not is_late and not is_over)
    assert all("ValueError: again" in error or "failed permanently" in error for error in errors)


def progress(host: FakeHost, handler: str) -> dict[str, Any]:
    after = host.object("v1/pods", "a", "web")
    assert after is not None
    found: dict[str, Any] = json.loads(after["metadata"]["annotations"][f"kopf.zalando.org/{handler}"])
    return found


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (
            lambda: {"at": datetime(2026, 1, 1)},
            "the result of 'create'['at']=datetime.datetime(2026, 1, 1, 0, 0)",
        ),
        (
            lambda: fail(kopf.TemporaryError("later", delay="60s")),
            "delay='60s' is not allowed: give a number",
        ),
        (lambda: fail(kopf.TemporaryError("a\ud800")), "a\ufffd"),
        (lambda: fail(kopf.TemporaryError("later", delay=1e300)), "later"),
        (lambda: fail(Busy("busy")), "busy"),
        (lambda: fail(with_delay("60s")), "later"),
        (lambda: fail(with_delay(float("nan"))), "later"),
        (lambda: fail(with_delay(Decimal(5))), "later"),
        (lambda: fail(ValueError("a\ud800")), "a\ufffd"),
        (lambda: kopf.info(pod(), reason="Seen", message=None), "message=None is not"),
    ],
)
def test_what_a_handler_does_wrong_is_its_failure(end: Any, message: str) -> None:
    @kopf.on.create("pods")
    def create(**_: Any) -> Any:
        return end()

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.run()
        assert progress(host, "create")["message"].startswith(message)
        assert progress(host, "create")["retries"] == 1


@pytest.mark.parametrize(
    ("error", "seconds", "logged"),
    [
        (lambda: Busy("busy"), 60, False),
        (lambda: with_delay(None), 0, False),
        (lambda: with_delay(Decimal(5)), 5, False),
        (lambda: with_delay("60s"), 7, True),
        (lambda: with_delay(""), 7, True),
        (lambda: with_delay(float("inf")), 7, True),
    ],
)
def test_a_delay_that_is_no_number_is_the_back_off(error: Any, seconds: int, logged: bool) -> None:
    @kopf.on.create("pods", backoff=7)
    def create(**_: Any) -> None:
        raise error()

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.reconcile(WorkKey("pods", "a", "web"))
        delayed = datetime.fromisoformat(progress(host, "create")["delayed"])
        assert (delayed - host.time).total_seconds() == seconds
        lines = [
            line.message for line in host.logs if "'create' is called again after its back" in line.message
        ]
        assert len(lines) == logged


def test_the_event_of_an_exception_is_unicode() -> None:
    @kopf.on.create("pods")
    def create(body: kopf.Body, **_: Any) -> None:
        kopf.exception(body, exc=ValueError("a\ud800"))

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.run()
    assert [(event.reason, event.note) for event in host.events] == [("ValueError", "a\ufffd")]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("x" * 1024, "x" * 1024),
        ("x" * 1025, "x" * 1024),
        ("é" * 600, "é" * 512),
        # A character that does not fit is left out.
        ("x" + "é" * 600, "x" + "é" * 511),
        ("xx" + "😀" * 600, "xx" + "😀" * 255),
    ],
    ids=["fits", "ascii", "two bytes", "odd", "four bytes"],
)
def test_the_message_of_an_event_is_cut_at_1024_bytes(message: str, shown: str) -> None:
    @kopf.on.create("pods")
    def create(body: kopf.Body, **_: Any) -> None:
        kopf.info(body, reason="Created", message=message)

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.run()
    assert [event.note for event in host.events] == [shown]


def fail(error: Exception) -> None:
    raise error


class Busy(kopf.TemporaryError):
    """Does not call the `__init__` of `TemporaryError`."""

    def __init__(self, what: str) -> None:
        self.what = what


def with_delay(delay: Any) -> kopf.TemporaryError:
    error = kopf.TemporaryError("later")
    error.delay = delay
    return error


@pytest.mark.parametrize("field", ["spec.n", ["spec", "n"], ("spec", "n")])
def test_a_subhandler_has_the_options_of_a_handler(field: Any) -> None:
    called: list[Any] = []

    @kopf.on.create("pods")
    def create(**_: Any) -> None:
        @kopf.subhandler(field=iter(field) if isinstance(field, list) else field, backoff=None, errors=None)
        def child(new: Any, **_: Any) -> None:
            called.append(new)
            raise ValueError("again")

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod(spec={"n": 1}))
        host.reconcile(WorkKey("pods", "a", "web"))
        assert progress(host, "create.child")["message"] == "again"
    assert called == [1]


def test_children_are_adopted() -> None:
    child: dict[str, Any] = {"kind": "ConfigMap"}

    @kopf.on.create("pods")
    def create(**_: Any) -> None:
        kopf.adopt(child)

    with FakeHost(kopf.plugin("test", "1.0")) as host:
        host.apply("v1/pods", pod())
        host.run()
    metadata = child["metadata"]
    assert (metadata["generateName"], metadata["namespace"], metadata["labels"]) == (
        "web-",
        "a",
        {"app": "x"},
    )
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", "u", True)


def test_a_diff_names_each_changed_field() -> None:
    old, new = {"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 5, "e": 6}, "d": 3}
    assert diff(old, new) == (
        ("change", ("a", "b"), 1, 5),
        ("remove", ("a", "c"), 2, None),
        ("add", ("a", "e"), None, 6),
    )
