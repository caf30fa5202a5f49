"""Tests of the plugin without Wasm."""

from collections.abc import Iterator
from typing import Any

import pytest
from oarlock import ObjectKey
from oarlock.testing import Emitted, FakeHost

import sources
from plugin import plugin


@pytest.fixture
def host() -> Iterator[FakeHost]:
    with FakeHost(plugin, config={"excludedNamespaces": ["kube-system"]}) as host:
        for name in ("home", "team-a", "team-b", "kube-system"):
            host.apply("v1/namespaces", {"metadata": {"name": name}})
        yield host


def source(mirror_to: str, **parts: Any) -> dict[str, Any]:
    annotations = {"oarlock.dev/mirror-to": mirror_to}
    return {"metadata": {"namespace": "home", "name": "settings", "annotations": annotations}, **parts}


def copy_in(host: FakeHost, namespace: str) -> dict[str, Any] | None:
    return host.object("v1/configmaps", namespace, "settings")


def test_a_copy_has_the_content_and_the_origin_of_its_source_only(host: FakeHost) -> None:
    host.apply("v1/configmaps", source("team-a", data={"a": "1"}, immutable=True))
    copy = copy_in(host, "team-a")
    assert copy is not None
    assert (copy["data"], "immutable" in copy) == ({"a": "1"}, False)
    assert copy["metadata"]["annotations"] == {"oarlock.dev/mirrored-from": "home/settings"}
    assert copy["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "oarlock-mirror"}
    assert copy_in(host, "team-b") is None


def test_copies_follow_their_source_and_the_annotation(host: FakeHost) -> None:
    host.apply("v1/configmaps", source("team-a,team-b", data={"a": "1", "b": "2"}))
    host.writes.clear()
    host.apply("v1/configmaps", source("team-b", data={"b": "two", "c": "3"}))
    assert [(write.verb, write.namespace, write.body) for write in host.writes] == [
        ("delete", "team-a", None),
        ("patch", "team-b", {"data": {"a": None, "b": "two", "c": "3"}}),
    ]
    host.delete("v1/configmaps", ObjectKey("home", "settings"))
    assert copy_in(host, "team-b") is None


def test_a_copy_that_a_user_changes_is_restored(host: FakeHost) -> None:
    host.apply("v1/configmaps", source("team-a", data={"a": "1"}))
    copy = copy_in(host, "team-a")
    assert copy is not None
    host.apply("v1/configmaps", {**copy, "data": {"a": "edited"}})
    restored = copy_in(host, "team-a")
    assert restored is not None
    assert restored["data"] == {"a": "1"}
    host.delete("v1/configmaps", restored)
    assert copy_in(host, "team-a") is not None


def test_every_namespace_gets_a_copy_but_those_that_are_excluded(host: FakeHost) -> None:
    host.apply("v1/configmaps", source("*"))
    host.apply("v1/namespaces", {"metadata": {"name": "later"}})
    assert {write.namespace for write in host.writes} == {"team-a", "team-b", "later"}


def test_an_object_of_another_owner_is_not_overwritten(host: FakeHost) -> None:
    host.apply(
        "v1/configmaps", {"metadata": {"namespace": "team-a", "name": "settings"}, "data": {"own": "1"}}
    )
    host.apply("v1/configmaps", source("team-a", data={"a": "1"}))
    assert host.writes == []
    note = "ConfigMap team-a/settings exists and is not a copy of this object"
    assert host.events == [Emitted("Warning", "MirrorRefused", note, "ConfigMap", "home", "settings")]


def test_a_copy_whose_source_is_gone_is_deleted(host: FakeHost) -> None:
    annotations = {"oarlock.dev/mirrored-from": "home/settings"}
    metadata = {"namespace": "team-a", "name": "settings", "annotations": annotations}
    host.apply("v1/secrets", {"metadata": metadata}, initial=True)
    host.synced()
    assert [(write.verb, write.namespace) for write in host.writes] == [("delete", "team-a")]


def test_namespaces_of_the_initial_list_reconcile_all_sources_once(host: FakeHost) -> None:
    host.apply("v1/configmaps", source("later"))
    host.apply("v1/namespaces", {"metadata": {"name": "later"}}, initial=True)
    host.run()
    assert host.writes == []
    host.advance(1)
    host.run()
    assert copy_in(host, "later") is not None


def test_a_secret_of_another_type_is_created_again(host: FakeHost) -> None:
    host.apply("v1/secrets", {"metadata": source("team-a")["metadata"], "type": "Opaque"})
    host.apply("v1/secrets", {"metadata": source("team-a")["metadata"], "type": "example.dev/key"})
    assert [write.verb for write in host.writes] == ["create", "delete", "create"]


def test_a_wrong_configuration_is_reported() -> None:
    with pytest.raises(
        ValueError, match="excludedNamespaces in the configuration is not a list of names: 'a'"
    ):
        FakeHost(plugin, config={"excludedNamespaces": "a"}).__enter__()


@pytest.mark.parametrize("text", ["", "settings", "/settings", "home/", "a/b/c", None, 7])
def test_a_source_is_a_namespace_and_a_name(text: object) -> None:
    assert sources.parse(text) is None
    assert sources.parse("home/settings") == ObjectKey("home", "settings")
