"""Tests of the plugin without Wasm."""

from oarlock.testing import FakeHost, Logged

from plugin import plugin


def test_an_object_is_reconciled_after_each_change() -> None:
    names = {"namespace": "default", "name": "web"}
    created = "2026-01-01T00:00:00Z"
    with FakeHost(plugin) as host:
        host.apply("apps/v1/deployments", {"metadata": {**names, "creationTimestamp": created}})
        host.run()
        host.delete("apps/v1/deployments", {"metadata": names})
        host.run()
    assert host.logs == [
        Logged("info", "reconciled", {**names, "created": created}),
        Logged("info", "gone", names),
    ]
