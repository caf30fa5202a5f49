"""The fake host behaves as the contract says, as far as it goes."""

import pytest

from oarlock import (
    Added,
    ControllerOwner,
    Event,
    NamedByField,
    NamedByLabel,
    ObjectKey,
    Plugin,
    Requeue,
    Synced,
    WorkKey,
    absent,
    differs,
    equals,
    exists,
    greater,
    less,
    none_of,
    one_of,
)
from oarlock.conditions import Condition
from oarlock.testing import FakeHost
from oarlock.testing.selectors import condition_holds, labels_match

from .objects import pod


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (exists("/spec/n"), True),
        (exists("/spec/nothing"), False),
        (exists("/spec/null"), False),
        (absent("/spec/null"), True),
        (equals("/spec/n", 2), True),
        (differs("/spec/n", 2), False),
        (differs("/spec/nothing", 2), True),
        (one_of("/spec/s", "a", "b"), True),
        (none_of("/spec/s", "a", "b"), False),
        (greater("/spec/n", 1), True),
        (less("/spec/n", 2), False),
        (greater("/spec/n", "1"), False),
        (less("/spec/s", "c"), True),
    ],
)
def test_conditions(condition: Condition, holds: bool) -> None:
    assert condition_holds(condition, {"spec": {"n": 2, "s": "b", "null": None}}) == holds


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier!=db", True),
        ("app in (db, web)", True),
        ("app notin (db,web)", False),
        ("!old,app", True),
        ("app=db", False),
    ],
)
def test_label_selectors(selector: str, matches: bool) -> None:
    assert labels_match(selector, {"app": "web"}) == matches


def test_a_text_that_is_no_selector_is_refused() -> None:
    with pytest.raises(ValueError, match="is not a label selector"):
        labels_match("app=web tier=db", {"app": "web"})


def test_a_rule_decides_which_key_a_change_adds() -> None:
    plugin = Plugin("test", "1.0")
    plugin.watch("v1/pods", name="owners", enqueue=ControllerOwner("apps", "ReplicaSet"))
    plugin.watch("v1/pods", name="nodes", enqueue=NamedByField("/spec/node", cluster_scoped=True))
    plugin.watch("v1/pods", name="apps", enqueue=NamedByLabel("app"))
    plugin.watch("v1/pods", name="all", enqueue=WorkKey("everything"))
    with FakeHost(plugin) as host:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
        host.apply("v1/pods", pod("web", spec={"node": "n1"}, metadata={"ownerReferences": [owner]}))
        assert [*host.queue] == [
            WorkKey("ReplicaSet", "a", "rs"),
            WorkKey("nodes", "", "n1"),
            WorkKey("apps", "a", "web"),
            WorkKey("everything"),
        ]


def test_a_change_of_what_a_key_read_wakes_it() -> None:
    plugin = Plugin("test", "1.0")
    secrets = plugin.lister("v1/secrets", wakes=True)
    runs: list[WorkKey] = []

    @plugin.watch("v1/pods").reconcile
    def reconcile(key: WorkKey) -> None:
        runs.append(key)
        secrets.get(ObjectKey(key.namespace, key.name))

    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web"))
        host.run()
        host.apply("v1/secrets", pod("other"))
        host.run()
        assert len(runs) == 1
        host.apply("v1/secrets", pod("web"))
        host.run()
        assert runs == [WorkKey("pods", "a", "web")] * 2


def test_a_key_that_asks_for_it_is_reconciled_later() -> None:
    plugin = Plugin("test", "1.0")
    runs: list[WorkKey] = []

    @plugin.schedule("tick", every=60).reconcile
    def tick(key: WorkKey) -> Requeue | None:
        runs.append(key)
        return Requeue(after=30) if len(runs) == 1 else None

    with FakeHost(plugin) as host:
        host.fire("tick")
        host.run()
        host.run()
        assert len(runs) == 1
        host.advance(30)
        host.run()
        assert len(runs) == 2


def test_own_writes_that_demand_a_version_are_skipped() -> None:
    plugin = Plugin("test", "1.0")
    client = plugin.client("v1/pods", ["patch", "create"])
    pods = plugin.watch("v1/pods", ignore_own_writes=True)
    seen: list[tuple[str, str]] = []

    @pods.on_event
    def handle(event: Event) -> None:
        seen.append((type(event).__name__, event.name))
        if len(seen) == 1:
            client.patch(event, {"spec": {"n": 1}}, unchanged=event)
            client.create(pod("second"))
        if len(seen) == 2:
            client.patch(event, {"spec": {"n": 2}})

    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web"))
        host.apply("v1/pods", pod("web"))
    assert seen == [("Added", "web"), ("Updated", "web"), ("Updated", "web")]


def test_an_object_with_finalizers_stays_until_they_are_removed() -> None:
    plugin = Plugin("test", "1.0")
    client = plugin.client("v1/pods", ["patch"])
    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("web", metadata={"finalizers": ["x"]}))
        host.delete("v1/pods", ObjectKey("a", "web"))
        going = host.object("v1/pods", "a", "web")
        assert going is not None
        assert "deletionTimestamp" in going["metadata"]
        client.patch(going, {"metadata": {"finalizers": None}})
        assert host.object("v1/pods", "a", "web") is None


def test_objects_that_existed_arrive_as_initial_adds() -> None:
    plugin = Plugin("test", "1.0")
    seen: list[tuple[str, bool]] = []

    @plugin.watch("v1/pods").on_add
    def added(event: Added) -> None:
        seen.append((event.name, event.is_in_initial_list))

    with FakeHost(plugin) as host:
        host.apply("v1/pods", pod("old"), initial=True)
        host.apply("v1/pods", pod("new"))
    assert seen == [("old", True), ("new", False)]


def test_an_exception_of_the_plugin_reaches_the_test() -> None:
    plugin = Plugin("test", "1.0")

    @plugin.watch("v1/pods").on_synced
    def synced(event: Synced) -> None:
        raise LookupError(event.subscription)

    with FakeHost(plugin) as host, pytest.raises(LookupError, match="pods"):
        host.synced()
