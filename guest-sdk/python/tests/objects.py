"""Objects for the tests."""

from typing import Any


def pod(name: str, namespace: str = "a", **parts: Any) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "labels": {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata | parts.pop("metadata", {}), **parts}
