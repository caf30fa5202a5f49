"""kopf's own examples, unchanged, from its source distribution: the folder in `KOPF_EXAMPLES`."""

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oarlock.testing import Emitted, FakeHost

import kopf
from kopf import registry
from kopf.structs import FINALIZER, LAST_HANDLED

EXAMPLES = os.environ.get("KOPF_EXAMPLES")
RESOURCE = "kopf.dev/v1/kopfexamples"
NAMES = {"namespace": "default", "name": "kopf-example-1"}

pytestmark = pytest.mark.skipif(EXAMPLES is None, reason="KOPF_EXAMPLES does not name the examples")


@pytest.fixture(autouse=True)
def _no_handlers() -> Iterator[None]:
    registry.handlers.clear()
    yield
    registry.handlers.clear()


def example(name: str) -> FakeHost:
    """Return a host with the operator of an example."""
    runpy.run_path(str(Path(EXAMPLES or "") / name / "example.py"))
    return FakeHost(kopf.plugin("example", "1.0", resources={"kopfexamples": RESOURCE, "kex": RESOURCE}))


def create(host: FakeHost, **spec: Any) -> None:
    """Create the object of the examples."""
    labels, annotations = {"somelabel": "somevalue"}, {"someannotation": "somevalue"}
    body = {
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {**NAMES, "labels": labels, "annotations": annotations},
        "spec": {"duration": "1m", "field": "value", "items": ["item1", "item2"], **spec},
    }
    host.apply(RESOURCE, body)
    host.run()


def change(host: FakeHost, **spec: Any) -> None:
    """Change the spec of the object."""
    body = current(host)
    host.apply(RESOURCE, {**body, "spec": {**body["spec"], **spec}})
    host.run()


def current(host: FakeHost) -> dict[str, Any]:
    """Return the object."""
    found = host.object(RESOURCE, *NAMES.values())
    assert found is not None
    return found


def test_the_result_of_a_handler_becomes_the_status(capsys: pytest.CaptureFixture[str]) -> None:
    with example("01-minimal") as host:
        create(host)
        body = current(host)
        assert body["status"] == {"create_fn": {"message": "hello world"}}
        assert [*body["metadata"]["annotations"]] == ["someannotation", LAST_HANDLED]
        host.apply(RESOURCE, body)
        host.run()
    assert capsys.readouterr().out.count("And here we are! Creating: {'duration': '1m'") == 1


def test_handlers_fail_for_good_or_are_tried_again() -> None:
    with example("03-exceptions") as host:
        create(host)
        assert LAST_HANDLED not in current(host)["metadata"]["annotations"]
        for _ in range(5):
            host.advance(1)
            host.run()
        lines = [line.message.splitlines()[0] for line in host.logs]
        prefix = "[default/kopf-example-1] Handler"
        assert (
            f"{prefix} 'instant_failure_with_only_a_message' failed permanently: Fail once and for all."
            in lines
        )
        temporary = "'eventual_success_with_a_few_messages' failed temporarily: Expected recoverable error."
        assert lines.count(f"{prefix} {temporary}") == 3
        assert f"{prefix} 'eventual_success_with_a_few_messages' succeeded." in lines
        tracebacks = "'eventual_failure_with_tracebacks' failed with an exception. Mode: TEMPORARY"
        assert lines.count(f"{prefix} {tracebacks}") == 3
        assert (
            f"{prefix} 'eventual_failure_with_tracebacks' failed permanently: it has failed 3 times" in lines
        )
        assert f"{prefix} 'instant_failure_with_traceback' failed with an exception. Mode: PERMANENT" in lines
        # The progress is gone, and the change counts as handled.
        assert [*current(host)["metadata"]["annotations"]] == ["someannotation", LAST_HANDLED]
        assert host.queue == {}


def test_events_are_recorded_about_the_object() -> None:
    with example("04-events") as host:
        create(host)
        about = ("KopfExample", "default", "kopf-example-1")
        assert host.events == [
            Emitted("Normal", "SomeReason", "Some message", *about),
            Emitted("Normal", "SomeReason", "Some message", *about),
            Emitted("Warning", "SomeReason", "Some message", *about),
            Emitted("Warning", "SomeReason", "Some exception: Exception text.", *about),
        ]


def test_every_change_has_its_handlers(capsys: pytest.CaptureFixture[str]) -> None:
    with example("05-handlers") as host:
        create(host)
        assert capsys.readouterr().out.splitlines() == [
            "CREATED 1st",
            "CREATED 2nd",
            "FIELD CHANGED: None -> value",
        ]
        assert current(host)["metadata"]["finalizers"] == [FINALIZER]
        change(host, field="changed")
        assert capsys.readouterr().out.splitlines() == ["UPDATED", "FIELD CHANGED: value -> changed"]
        change(host, duration="2m")
        assert capsys.readouterr().out.splitlines() == ["UPDATED"]
        handled = current(host)
        host.delete(RESOURCE, handled)
        host.run()
        assert capsys.readouterr().out.splitlines() == ["DELETED 1st", "DELETED 2nd"]
        assert host.object(RESOURCE, *NAMES.values()) is None
    registry.handlers.clear()
    with example("05-handlers") as later:
        later.apply(RESOURCE, handled)
        later.run()
        assert capsys.readouterr().out.splitlines() == ["RESUMED 1st", "RESUMED 2nd"]


def test_handlers_that_a_handler_adds_run_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    with example("07-subhandlers") as host:
        create(host)
        lines = ["=== Handling creation for item1. ===", "=== Handling creation for item2. ==="]
        assert capsys.readouterr().out.splitlines() == lines
        assert [*current(host)["metadata"]["annotations"]] == ["someannotation", LAST_HANDLED]


def test_an_exception_of_an_event_handler_is_logged_only(capsys: pytest.CaptureFixture[str]) -> None:
    with example("08-events") as host:
        create(host)
        host.delete(RESOURCE, current(host))
        received = [line.split("'")[3] for line in capsys.readouterr().out.splitlines()]
        assert received == ["ADDED", "DELETED"]
        errors = [line.message for line in host.logs if line.level == "error"]
        assert len(errors) == 2
        assert errors[0].endswith("Exception: Oops!")


def test_timers_wait_until_the_object_is_idle() -> None:
    with example("15-timers") as host:
        create(host)
        for _ in range(14):
            host.advance(1)
            host.run()
        lines = [line.message.removeprefix("[default/kopf-example-1] ") for line in host.logs]
        assert lines.count("Ping from a sync timer: field='value'") == 5  # after 5, 7, 9, 11, 13 s
        assert lines.count("Ping from an async timer: field='value'") == 2  # after 10, 14 s


def test_an_index_has_the_values_of_all_objects() -> None:
    with example("16-indexing") as host:
        for name, phase in (("one", "Running"), ("two", "Pending")):
            pod = {"metadata": {"namespace": "default", "name": name, "labels": {"app": name}}}
            host.apply("v1/pods", {"apiVersion": "v1", "kind": "Pod", **pod, "status": {"phase": phase}})
        create(host)
        # A collection with one False is true, in kopf as well.
        assert current(host)["status"] == {"running-pods": ["default::one", "default::two"]}
        host.delete("v1/pods", {"metadata": {"namespace": "default", "name": "one"}})
        host.run()
        host.advance(5)
        host.run()
        assert current(host)["status"] == {"running-pods": ["default::two"]}
