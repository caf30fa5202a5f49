from dataclasses import dataclass

import pytest

from oarlock import NotFound, ObjectKey, Plugin, WorkKey, Written, at, metrics, work_queue
from oarlock._host import Projection, RawPage, RawRow
from oarlock.names import ObjectRef
from oarlock.testing import FakeHost

from .objects import pod


@dataclass
class Spec:
    node: str = at("/spec/node", default="none")


@pytest.fixture
def plugin() -> Plugin:
    return Plugin("test", "1.0")


def test_a_lister_returns_whole_objects_or_rows_of_fields(plugin: Plugin) -> None:
    pods = plugin.lister("v1/pods")
    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web", spec={"node": "n1"}))
        whole = pods.get(ObjectKey("a", "web"))
        assert whole is not None
        assert whole["spec"] == {"node": "n1"}
        row = pods.get(ObjectKey("a", "web"), fields=Spec)
        assert row is not None
        assert (row.fields.node, row.name, row.resource_version) == ("n1", "web", "1")
        assert pods.get(ObjectKey("a", "other"), fields=["/spec"]) is None
        assert [it["metadata"]["name"] for it in pods.list(label_selector="app in (web, db), !old")] == [
            "web"
        ]
        assert [*pods.list(namespace="b")] == []
        assert pods.has_synced()
        pods.wait_until_seen(Written("web", "u", "1"))


def test_indices_find_objects_by_label_pointer_and_owner(plugin: Plugin) -> None:
    pods = plugin.lister("v1/pods")
    by_app = pods.index("by-app", label="app")
    by_volume = pods.index("by-volume", pointer="/spec/volumes/*/name")
    by_owner = pods.index("by-owner", owner_uid=True)
    with FakeHost(plugin) as host:
        volumes = {"volumes": [{"name": "x"}, {"name": "y"}]}
        host.apply("v1/pods", pod("web", spec=volumes, metadata={"ownerReferences": [{"uid": "o1"}]}))
        host.apply("v1/pods", pod("other", metadata={"labels": {}}))
        assert by_app.values() == ["web"]
        assert by_volume.values() == ["x", "y"]
        assert [row.name for row in by_volume.list("y", fields=[])] == ["web"]
        assert [it["metadata"]["name"] for it in by_owner.list("o1")] == ["web"]
    with pytest.raises(TypeError, match="give one of label=, pointer= and owner_uid=True"):
        pods.index("wrong")


def test_pages_are_fetched_when_they_are_needed(plugin: Plugin) -> None:
    pods = plugin.lister("v1/pods")

    class Paged(FakeHost):
        def __init__(self) -> None:
            super().__init__(plugin)
            self.tokens: list[str] = []

        def cache_list(
            self, lister: str, namespace: str | None, label_selector: str, projection: Projection, token: str
        ) -> RawPage:
            self.tokens.append(token)
            page = int(token or "0")
            row = RawRow(ObjectRef("a", f"pod-{page}", "u", "1"), [], None)
            return RawPage([row], "" if page == 2 else str(page + 1))

    with Paged() as host:
        rows = pods.list(fields=[])
        assert host.tokens == []
        assert next(rows).name == "pod-0"
        assert host.tokens == [""]
        assert [row.name for row in rows] == ["pod-1", "pod-2"]
        assert host.tokens == ["", "1", "2"]


def test_the_error_of_a_list_is_raised_where_it_is_read(plugin: Plugin) -> None:
    pods = plugin.lister("v1/pods", namespace="b")

    class Failing(FakeHost):
        def cache_list(self, *_: object) -> RawPage:
            raise NotFound("gone")

    with Failing(plugin):
        rows = pods.list()
        with pytest.raises(NotFound):
            next(rows)


def test_metrics_and_keys_reach_the_host(plugin: Plugin) -> None:
    copies, age = metrics.Counter("copies"), metrics.Gauge("age")
    with FakeHost(plugin) as host:
        copies.inc(team="a")
        copies.inc(2, team="a")
        age.set(1.5)
        work_queue.add(WorkKey("all"), after=60)
        work_queue.add(WorkKey("all"), after=5)
        assert [(time - host.time).total_seconds() for time in host.queue.values()] == [5]
    assert host.metrics == {("copies", (("team", "a"),)): 3.0, ("age", ()): 1.5}
