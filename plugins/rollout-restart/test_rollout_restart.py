"""Tests of the plugin without Wasm."""

from typing import Any

import pytest
from oarlock import ObjectKey
from oarlock.testing import Emitted, FakeHost

from plugin import OBSERVED, RESTARTED_AT, plugin
from references import references

WEB = ObjectKey("shop", "web")


def configmap(**data: str) -> dict[str, Any]:
    return {"metadata": {"namespace": "shop", "name": "settings"}, "data": data}


def deployment(enabled: str = "true", **annotations: str) -> dict[str, Any]:
    pods = {"volumes": [{"configMap": {"name": "settings"}}], "containers": []}
    annotations |= {"oarlock.dev/restart-on-change": enabled}
    metadata = {"namespace": "shop", "name": "web", "annotations": annotations}
    return {"metadata": metadata, "spec": {"template": {"spec": pods}}}


def restarts(host: FakeHost) -> list[str]:
    templates = (write.body.get("spec", {}).get("template") for write in host.writes)
    return [template["metadata"]["annotations"][RESTARTED_AT] for template in templates if template]


def test_the_first_look_observes_and_restarts_nothing() -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment())
        host.run()
        assert [write.verb for write in host.writes] == ["patch"]
        assert restarts(host) == []


def test_a_change_of_what_the_pods_read_restarts_them() -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment())
        host.run()
        host.apply("v1/configmaps", configmap(color="blue"))
        host.run()
        assert restarts(host) == ["2026-01-01T00:00:00Z"]
        assert host.events == [
            Emitted("Normal", "Restarted", "Changed: ConfigMap/settings", "Deployment", *WEB)
        ]


def test_changes_in_the_interval_lead_to_one_restart_at_its_end() -> None:
    with FakeHost(plugin, config={"minIntervalSeconds": 60}) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment())
        host.run()
        for color in ("blue", "green", "white"):
            host.apply("v1/configmaps", configmap(color=color))
            host.run()
        assert restarts(host) == ["2026-01-01T00:00:00Z"]
        host.advance(60)
        host.run()
        assert restarts(host) == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]


@pytest.mark.parametrize("again", [{"color": "red"}, {"color": "blue"}])
def test_a_deleted_configmap_restarts_nothing_until_it_is_back_and_differs(again: dict[str, str]) -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment())
        host.run()
        host.delete("v1/configmaps", ObjectKey("shop", "settings"))
        host.run()
        assert restarts(host) == []
        host.apply("v1/configmaps", configmap(**again))
        host.run()
        assert len(restarts(host)) == (again != {"color": "red"})


def test_labels_and_other_objects_do_not_count() -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment())
        host.run()
        labelled = configmap(color="red")
        labelled["metadata"]["labels"] = {"a": "b"}
        host.apply("v1/configmaps", labelled)
        host.apply("v1/secrets", {"metadata": {"namespace": "shop", "name": "settings"}, "data": {}})
        host.run()
        assert len(host.writes) == 1


@pytest.mark.parametrize("enabled", ["false", ""])
def test_a_deployment_that_does_not_ask_for_it_is_left_alone(enabled: str) -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment(enabled))
        host.run()
        assert host.writes == []


def test_an_annotation_that_a_user_broke_is_written_again() -> None:
    with FakeHost(plugin) as host:
        host.apply("v1/configmaps", configmap(color="red"))
        host.apply("apps/v1/deployments", deployment(**{OBSERVED: "{"}))
        host.run()
        [write] = host.writes
        assert write.body["metadata"]["annotations"][OBSERVED].startswith('{"ConfigMap/settings":')


def test_every_place_that_names_a_reference_is_found() -> None:
    pods = {
        "volumes": [
            {"configMap": {"name": "a"}},
            {"secret": {"secretName": "b"}},
            {"projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "d"}}]}},
            {"emptyDir": {}},
        ],
        "containers": [
            {
                "envFrom": [{"configMapRef": {"name": "e"}}, {"secretRef": {"name": "f"}}],
                "env": [
                    {"valueFrom": {"configMapKeyRef": {"name": "a", "key": "k"}}},
                    {"valueFrom": {"secretKeyRef": {"name": "g", "key": "k"}}},
                    {"value": "h"},
                ],
            }
        ],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "i"}}]}],
    }
    found = [str(reference) for reference in sorted(references(pods))]
    maps, secrets = ["a", "c", "e"], ["b", "d", "f", "g", "i"]
    assert found == [f"ConfigMap/{name}" for name in maps] + [f"Secret/{name}" for name in secrets]
    assert references({}) == set()


def test_a_wrong_configuration_is_reported() -> None:
    with pytest.raises(
        ValueError, match="minIntervalSeconds in the configuration is not a number of seconds: '1'"
    ):
        FakeHost(plugin, config={"minIntervalSeconds": "1"}).__enter__()
