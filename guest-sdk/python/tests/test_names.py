import math
from datetime import timedelta
from typing import Any

import pytest

from oarlock import (
    ObjectKey,
    ObjectRef,
    Plugin,
    Requeue,
    Resource,
    Retry,
    Row,
    WorkKey,
    Written,
    annotation,
    label,
    pointer,
    work_queue,
)
from oarlock.client import _preconditions
from oarlock.names import key_of, ref_of, regarding_of
from oarlock.testing import FakeHost


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("v1/pods", Resource("", "v1", "pods")),
        ("v1/pods/status", Resource("", "v1", "pods", "status")),
        ("apps/v1/deployments", Resource("apps", "v1", "deployments")),
        ("example.dev/v1beta2/widgets/scale", Resource("example.dev", "v1beta2", "widgets", "scale")),
    ],
)
def test_a_path_names_a_resource_of_any_group_and_a_subresource(path: str, resource: Resource) -> None:
    assert Resource.parse(path) == resource
    assert str(resource) == path


@pytest.mark.parametrize("path", ["pods", "v1", "v1/", "apps/deployments", "apps/v1/deployments/a/b", ""])
def test_another_text_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(ValueError, match="write GROUP/VERSION/PLURAL, such as 'apps/v1/deployments'"):
        Resource.parse(path)


def test_names_come_from_keys_rows_and_whole_objects() -> None:
    whole = {"metadata": {"namespace": "a", "name": "b", "uid": "u", "resourceVersion": "7"}}
    assert key_of(whole) == key_of(WorkKey("pods", "a", "b")) == ObjectKey("a", "b")
    assert ref_of(whole) == ObjectRef("a", "b", "u", "7")
    assert key_of({"metadata": {"name": "node-1"}}) == ObjectKey("", "node-1")


@pytest.mark.parametrize(
    "given",
    [
        {"namespace": "shop", "name": "web"},
        {"metadata": {"namespace": "shop"}},
        {"metadata": None},
        ("shop", "web"),
        "web",
    ],
)
def test_what_names_no_object_is_refused_with_what_does(given: Any) -> None:
    name = type(given).__name__
    with pytest.raises(TypeError, match=rf"^this {name} does not name an object: give ObjectKey\(namespace,"):
        key_of(given)
    with pytest.raises(TypeError, match=f"^this {name} does not name a version of an object: give a row, an"):
        ref_of(given)


def test_a_lister_names_the_keys_that_it_takes() -> None:
    plugin = Plugin("test", "1.0")
    pods = plugin.lister("v1/pods")
    with FakeHost(plugin), pytest.raises(TypeError, match="a whole object as a dict, which has `metadata`"):
        pods.get({"namespace": "shop", "name": "web"})


NONE = {"metadata": {"namespace": None, "name": "web", "uid": None, "resourceVersion": None}}


@pytest.mark.parametrize("nothing", [NONE, Row(None, None, None, None, {})])  # type: ignore[arg-type]
def test_a_part_of_a_version_that_is_none_is_empty(nothing: Any) -> None:
    ref = ref_of(nothing)
    assert (ref.namespace, ref.uid, ref.resource_version) == ("", "", "")


def test_an_event_is_about_an_object_whose_uid_is_none() -> None:
    row: Any = Row("a", "web", None, None, {})  # type: ignore[arg-type]
    assert regarding_of(row) == ObjectRef("a", "web", "", "")


@pytest.mark.parametrize("part", ["uid", "resourceVersion"])
def test_a_write_may_depend_on_one_part_of_a_version(part: str) -> None:
    plugin = Plugin("test", "1.0")
    pods = plugin.client("v1/pods", ["patch"])
    with FakeHost(plugin) as host:
        before = host.apply("v1/pods", {"metadata": {"namespace": "a", "name": "web"}})
        metadata = before["metadata"]
        unchanged = {"metadata": {**metadata, part: None}}
        row: Any = Row("a", "web", metadata["uid"], metadata["resourceVersion"], {})
        setattr(row, {"uid": "uid", "resourceVersion": "resource_version"}[part], None)
        for given in (unchanged, row):
            other = {"uid": "resource_version", "resourceVersion": "uid"}[part]
            conditions = _preconditions(given)
            assert [name for name, value in conditions._asdict().items() if value] == [other]
        pods.patch(before, {"spec": {"n": 1}}, unchanged=unchanged)


class Seen:
    def __init__(self, version: Any) -> None:
        self.resource_version = version


def test_a_lister_waits_for_anything_with_a_version() -> None:
    waited: list[str] = []

    class Noting(FakeHost):
        def cache_wait_until_seen(self, lister: str, resource_version: str, timeout_ms: int) -> None:
            waited.append(resource_version)

    plugin = Plugin("test", "1.0")
    pods = plugin.lister("v1/pods")
    with Noting(plugin):
        pods.wait_until_seen(Seen("7"))
        pods.wait_until_seen(Written("web", "u", "8"))
        pods.wait_until_seen({"metadata": {"name": "web", "resourceVersion": "9"}})
        assert waited == ["7", "8", "9"]
        with pytest.raises(TypeError, match=r"^resource_version=5 is not allowed: give a str"):
            pods.wait_until_seen(Seen(5))
        for empty in (Seen(""), Seen(None), Written("web", "u", ""), {"metadata": {"name": "web"}}):
            with pytest.raises(ValueError, match=r" has no resourceVersion: give what a write returned$"):
                pods.wait_until_seen(empty)
        with pytest.raises(TypeError, match=r"^this ObjectKey does not name a version of an object: give a"):
            pods.wait_until_seen(ObjectKey("a", "web"))  # type: ignore[arg-type]
    assert waited == ["7", "8", "9"]


def test_parts_of_a_pointer_are_escaped() -> None:
    assert pointer("data", "a/b", "c~d") == "/data/a~1b/c~0d"
    assert label("app") == "/metadata/labels/app"
    assert annotation("oarlock.dev/x") == "/metadata/annotations/oarlock.dev~1x"


def test_durations_are_seconds_or_timedeltas_and_rounded_up() -> None:
    assert Requeue(after=1.0004).after_ms == 1001
    assert Requeue(after=timedelta(minutes=1)) == Requeue(after=60)
    assert Retry("later", after=0.5).after_ms == 500


@pytest.mark.parametrize("given", [50 * 86_400, 10**400, 1e308, timedelta.max])
def test_a_delay_that_the_contract_cannot_hold_is_shortened_to_49_days(given: Any) -> None:
    greatest = 2**32 - 1
    assert Requeue(after=given).after_ms == greatest
    assert Retry("later", after=given).after_ms == greatest
    with FakeHost(Plugin("test", "1.0")) as host:
        work_queue.add(WorkKey("all"), after=given)
        [due] = host.queue.values()
        assert due - host.time == timedelta(milliseconds=greatest)


@pytest.mark.parametrize("given", [-1, timedelta(seconds=-1), math.nan, math.inf])
def test_a_duration_is_finite_and_not_negative(given: Any) -> None:
    with pytest.raises(ValueError, match="is not a duration: a duration is finite and not negative"):
        Requeue(after=given)


@pytest.mark.parametrize("given", ["30s", "30", True, b"30"])
def test_what_is_no_duration_is_refused_with_what_is(given: Any) -> None:
    plugin = Plugin("test", "1.0")
    refused = f"^{given!r} is not a duration: give a number of seconds, such as 30, or a timedelta, not"
    with pytest.raises(TypeError, match=refused):
        plugin.schedule("tick", every=given)
    with pytest.raises(TypeError, match=refused):
        plugin.watch("v1/pods", resync=given)
    with pytest.raises(TypeError, match=refused):
        Requeue(after=given)
    with pytest.raises(TypeError, match=refused):
        Retry("later", after=given)
    with FakeHost(plugin), pytest.raises(TypeError, match=refused):
        work_queue.add(WorkKey("pods", "a", "b"), after=given)
