"""Tests of the plugin without Wasm."""

from oarlock.testing import FakeHost, Logged

from plugin import plugin


def test_a_relabelled_object_is_logged() -> None:
    names = {"namespace": "default", "name": "web"}
    with FakeHost(plugin) as host:
        host.apply("apps/v1/deployments", {"metadata": names})
        host.apply("apps/v1/deployments", {"metadata": {**names, "labels": {"app": "web"}}})
        host.delete("apps/v1/deployments", {"metadata": names})
    assert host.logs == [
        Logged("info", "added", {**names, "created": "null"}),
        Logged("info", "updated", {**names, "relabelled": "true"}),
        Logged("info", "deleted", names),
    ]
