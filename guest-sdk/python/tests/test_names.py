from datetime import timedelta

import pytest

from oarlock import ObjectKey, ObjectRef, Requeue, Resource, Retry, WorkKey, annotation, label, pointer
from oarlock.names import key_of, ref_of


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


def test_parts_of_a_pointer_are_escaped() -> None:
    assert pointer("data", "a/b", "c~d") == "/data/a~1b/c~0d"
    assert label("app") == "/metadata/labels/app"
    assert annotation("oarlock.dev/x") == "/metadata/annotations/oarlock.dev~1x"


def test_durations_are_seconds_or_timedeltas_and_rounded_up() -> None:
    assert Requeue(after=1.0004).after_ms == 1001
    assert Requeue(after=timedelta(minutes=1)) == Requeue(after=60)
    assert Retry("later", after=0.5).after_ms == 500
    with pytest.raises(ValueError, match="not negative"):
        Requeue(after=-1)
