from collections.abc import Callable
from typing import Any

import pytest

from oarlock import (
    AlreadyExists,
    Conflict,
    EventRecorder,
    Invalid,
    LimitExceeded,
    NotDeclared,
    NotFound,
    ObjectKey,
    ObjectRef,
    Plugin,
    Resource,
    WorkKey,
    Written,
)
from oarlock.client import Client, Verb
from oarlock.testing import Emitted, FakeHost, Write

from .objects import pod

ALL: list[Verb] = ["get", "list", "create", "patch", "update", "delete"]


@pytest.fixture
def plugin() -> Plugin:
    return Plugin("test", "1.0")


def test_objects_are_created_changed_and_deleted(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ALL)
    with FakeHost(plugin) as host:
        created = pods.create(pod("web"))
        assert created.name == "web"
        with pytest.raises(AlreadyExists):
            pods.create(pod("web"))
        pods.patch(ObjectKey("a", "web"), {"metadata": {"labels": {"app": None, "tier": "x"}}})
        pods.patch(ObjectKey("a", "web"), [{"op": "add", "path": "/spec", "value": {"n": 1}}], kind="json")
        pods.apply({"metadata": {"namespace": "a", "name": "web"}, "spec": {"m": 2}}, force=True)
        found = pods.get(ObjectKey("a", "web"))
        assert found is not None
        assert (found["metadata"]["labels"], found["spec"]) == ({"tier": "x"}, {"n": 1, "m": 2})
        found["spec"] = {"n": 3}
        pods.replace(found)
        with pytest.raises(Conflict):
            pods.replace(found)
        assert pods.delete(found)
        assert not pods.delete(found)
        assert pods.get(found) is None
        with pytest.raises(NotFound):
            pods.patch(found, {})
    assert [write.verb for write in host.writes] == ["create", "patch", "patch", "apply", "replace", "delete"]
    assert host.writes[1] == Write(
        "patch", "v1/pods", "a", "web", {"metadata": {"labels": {"app": None, "tier": "x"}}}
    )


def test_a_write_of_an_unchanged_object_fails_after_a_change(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ["patch", "delete"])
    with FakeHost(plugin) as host:
        before = host.apply("v1/pods", pod("web"))
        pods.patch(before, {"spec": {"n": 1}}, unchanged=before)
        with pytest.raises(Conflict):
            pods.patch(before, {"spec": {"n": 2}}, unchanged=before)
        with pytest.raises(Conflict):
            pods.delete(before, unchanged=before)


def test_status_and_scale_are_clients_of_subresources(plugin: Plugin) -> None:
    status = plugin.client("apps/v1/deployments/status", ["patch"])
    scale = plugin.client("apps/v1/deployments/scale", ["get", "patch"])
    with FakeHost(plugin) as host:
        web = host.apply("apps/v1/deployments", pod("web", spec={"replicas": 1, "paused": True}))
        status.patch(web, {"status": {"ready": True}, "spec": {"paused": False}})
        scale.patch(web, {"spec": {"replicas": 3}})
        current = scale.get(web)
        assert current is not None
        assert current["spec"] == {"replicas": 3}
        after = host.object("apps/v1/deployments", "a", "web")
        assert after is not None
        assert (after["spec"], after["status"]) == ({"replicas": 3, "paused": True}, {"ready": True})
    assert [write.resource for write in host.writes] == [
        "apps/v1/deployments/status",
        "apps/v1/deployments/scale",
    ]


def test_a_request_that_is_not_declared_says_what_to_write(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ["get"])
    with (
        FakeHost(plugin),
        pytest.raises(NotDeclared, match=r"plugin.client\('v1/pods', \['get', 'delete'\]\)"),
    ):
        pods.delete(ObjectKey("a", "b"))
    with pytest.raises(ValueError, match="only whole objects have 'delete'"):
        plugin.client("apps/v1/deployments/status", ["patch", "delete"])
    with pytest.raises(ValueError, match="'watch' is not a verb"):
        plugin.client("v1/pods", ["watch"])  # type: ignore[list-item]


def test_lists_are_filtered_by_both_selectors(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ["list"])
    with FakeHost(plugin) as host:
        for name, app in (("one", "web"), ("two", "web"), ("three", "db")):
            host.apply("v1/pods", pod(name, metadata={"labels": {"app": app}}))
        rows = pods.list(
            namespace="a", label_selector="app=web", field_selector="metadata.name!=one", fields=[]
        )
        assert [row.name for row in rows] == ["two"]


def test_a_live_list_of_large_objects_is_read_in_smaller_pages(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ["list"])
    with FakeHost(plugin) as host:
        for n in range(9):
            host.apply("v1/pods", pod(f"p{n}", spec={"large": "x" * (1 << 20)}))
        assert [it["metadata"]["name"] for it in pods.list()] == [f"p{n}" for n in range(9)]
        assert len(list(pods.list(limit=2, fields=[]))) == 9
        host.apply("v1/pods", pod("p9", spec={"large": "x" * (5 << 20)}))
        with pytest.raises(LimitExceeded):
            list(pods.list())


def test_events_are_recorded_about_an_object(plugin: Plugin) -> None:
    recorder = EventRecorder("v1/pods", "Pod")
    with FakeHost(plugin) as host:
        web = host.apply("v1/pods", pod("web"))
        recorder.warning(web, "Refused", "another object has the name")
    assert host.events == [Emitted("Warning", "Refused", "another object has the name", "Pod", "a", "web")]


def test_an_event_needs_no_more_than_the_name_of_its_object(plugin: Plugin) -> None:
    class Noting(FakeHost):
        def emit(self, resource: Resource, regarding: ObjectRef, *rest: Any) -> None:
            about.append(regarding)

    about: list[ObjectRef] = []
    recorder = EventRecorder("v1/pods", "Pod")
    with Noting(plugin):
        recorder.normal(ObjectKey("a", "web"), "Seen", "")
        recorder.warning(WorkKey("pods", "a", "web"), "Seen", "")
        recorder.normal(Written("node-1", "u", "7"), "Seen", "")
        recorder.normal({"metadata": {"namespace": "a", "name": "web", "uid": "u"}}, "Seen", "")
        with pytest.raises(TypeError, match="this str does not name an object: give ObjectKey"):
            recorder.normal("web", "Seen", "")  # type: ignore[arg-type]
    named = ObjectRef("a", "web", "", "")
    assert about == [named, named, ObjectRef("", "node-1", "u", "7"), ObjectRef("a", "web", "u", "")]


@pytest.mark.parametrize(
    "write",
    [
        lambda pods, found: pods.create(pod("new")),
        lambda pods, found: pods.apply(pod("new"), force=True),
        lambda pods, found: pods.patch(found, {"spec": {}}),
        lambda pods, found: pods.replace(found),
    ],
)
def test_what_a_write_returns_names_the_object(
    plugin: Plugin, write: Callable[[Client, dict[str, Any]], Written]
) -> None:
    pods = plugin.client("v1/pods", ALL)
    recorder = EventRecorder("v1/pods", "Pod")
    with FakeHost(plugin) as host:
        written = write(pods, host.apply("v1/pods", pod("web")))
        recorder.normal(written, "Written", "")
        found = pods.get(written)
        assert found is not None
        assert found["metadata"]["uid"] == written.uid
        assert pods.delete(written, unchanged=written)
    [event] = host.events
    assert (event.namespace, event.name) == ("a", written.name)


def test_replace_takes_what_was_read(plugin: Plugin) -> None:
    pods = plugin.client("v1/pods", ["update"])
    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web"))
        with pytest.raises(Invalid):
            pods.replace(pod("web"))
