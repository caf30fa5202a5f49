from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from oarlock import Added, Deleted, LazyObject, OarlockError, Plugin, Updated, at
from oarlock.testing import FakeHost

from .objects import pod


@dataclass
class Pod:
    phase: str = at("/status/phase", default="Unknown")
    labels: dict[str, str] = at("/metadata/labels", default_factory=dict)


class Counting(FakeHost):
    """Notes which fields the plugin reads."""

    def __init__(self, plugin: Plugin) -> None:
        super().__init__(plugin)
        self.read: list[str] = []

    def event_field(self, old: bool, pointer: str) -> str | None:
        self.read.append(pointer)
        return super().event_field(old, pointer)

    def event_fields(self, old: bool, pointers: Sequence[str]) -> Sequence[str | None]:
        self.read.append(" ".join(pointers))
        return super().event_fields(old, pointers)

    def event_json(self, old: bool) -> str:
        self.read.append("whole")
        return super().event_json(old)


@pytest.fixture
def plugin() -> Plugin:
    return Plugin("test", "1.0")


def test_declared_fields_are_values_and_need_no_call(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods", fields=Pod)
    seen: list[object] = []

    @pods.on_add
    def added(event: Added[Pod]) -> None:
        seen.append(event.fields)

    @pods.on_update
    def updated(event: Updated[Pod]) -> None:
        seen.append((event.old.fields.phase, event.fields.phase, event.is_resync))

    with Counting(plugin) as host:
        host.apply("v1/pods", pod("web", status={"phase": None}))
        host.apply("v1/pods", pod("web", status={"phase": None}, spec={"changed": True}))
        host.apply("v1/pods", pod("web", status={"phase": "Running"}))
    assert seen == [Pod("Unknown", {"app": "web"}), ("Unknown", "Running", False)]
    assert host.read == []


def test_declared_fields_that_the_notification_does_not_carry_are_read_one_by_one(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods", fields=["/status/phase", "/spec/node"])
    seen: list[object] = []

    class Large(Counting):
        def _handle(self, watch, old, new, is_initial) -> None:  # type: ignore[no-untyped-def]
            shape = watch.shape
            watch.shape = None
            self._event = (old, new)
            try:
                from oarlock.event import begin
                from oarlock.names import ref_of

                event: Added = Added(watch.name, ref_of(new), shape, [], False)
                begin(event)
                watch.call("on_add", event)
            finally:
                watch.shape = shape

    @pods.on_add
    def added(event: Added) -> None:
        seen.append(event.fields)

    with Large(plugin) as host:
        host.apply("v1/pods", pod("web", status={"phase": "Running"}))
    assert seen == [{"/status/phase": "Running", "/spec/node": None}]
    assert host.read == ["/status/phase", "/spec/node"]


def test_an_object_is_read_part_by_part(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods")
    seen: list[object] = []

    @pods.on_add
    def added(event: Added) -> None:
        it = event.object
        seen.append(it["metadata"]["labels"]["app"])
        seen.append(it["spec"]["containers"][0]["name"])
        seen.append(("status" in it, it.get("status"), event.field("/status", "none")))
        seen.append(event.read(["/metadata/name", "/nothing"]))

    with Counting(plugin) as host:
        host.apply("v1/pods", pod("web", spec={"containers": [{"name": "main"}]}))
    assert seen == ["web", "main", (False, None, "none"), {"/metadata/name": "web", "/nothing": None}]
    assert "whole" not in host.read
    assert host.read[:3] == ["/metadata", "/metadata/labels", "/metadata/labels/app"]


def test_a_lazy_object_is_a_mapping_and_is_parsed_once() -> None:
    calls: list[str] = []

    def read(pointer: str) -> str | None:
        calls.append(pointer)
        return {"": '{"a/b": {"c": [1]}}', "/a~1b": '{"c": [1]}', "/a~1b/c": "[1]"}.get(pointer)

    lazy = LazyObject(read)
    part = lazy["a/b"]
    assert isinstance(part, LazyObject)
    assert part["c"] == [1]
    assert part == {"c": [1]}
    assert calls == ["/a~1b", "/a~1b/c"]
    assert [*lazy] == ["a/b"]
    assert len(lazy) == 1
    assert lazy.to_dict() == {"a/b": {"c": [1]}}
    assert calls == ["/a~1b", "/a~1b/c", ""]
    with pytest.raises(KeyError):
        LazyObject(read)["nothing"]


@pytest.mark.parametrize(
    "value", ["", "plain", 'quoted " and \\ and \n', "ü", 1, 1.5, True, None, [], {"a": "b"}]
)
def test_a_field_has_the_value_of_the_object(plugin: Plugin, value: object) -> None:
    pods = plugin.watch("v1/pods", fields=["/spec"])
    seen: list[object] = []

    @pods.on_add
    def added(event: Added) -> None:
        seen.extend([event.field("/spec"), event.fields["/spec"], event.object["spec"]])

    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web", spec=value))
    assert seen == [value] * 3


def test_the_state_of_a_delete_is_the_last_one(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods", label_selector="app=web")
    seen: list[object] = []

    @pods.on_delete
    def deleted(event: Deleted) -> None:
        seen.append((event.name, event.json()["spec"]["n"], event.final_state_unknown))

    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web", spec={"n": 1}))
        host.apply("v1/pods", pod("web", spec={"n": 2}, metadata={"labels": {"app": "other"}}))
    assert seen == [("web", 1, False)]


def test_an_event_that_is_kept_cannot_be_read_after_its_call(plugin: Plugin) -> None:
    pods = plugin.watch("v1/pods")
    kept: list[Added] = []
    pods.on_add(kept.append)
    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web"))
        with pytest.raises(OarlockError, match="the call about a/web is over"):
            kept[0].field("/metadata/name")
        assert kept[0].name == "web"
