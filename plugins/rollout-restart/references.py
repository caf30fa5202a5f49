"""The ConfigMaps and Secrets that a Pod template names."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

Object = dict[str, Any]


class Reference(NamedTuple):
    """A ConfigMap or Secret in the namespace of the Pods."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


def references(pods: Object) -> set[Reference]:
    """Return the names in the `spec` of a Pod template."""
    volumes = items(pods, "volumes")
    projections = chain.from_iterable(items(it.get("projected"), "sources") for it in volumes)
    containers = [*items(pods, "containers"), *items(pods, "initContainers")]
    env_from = chain.from_iterable(items(it, "envFrom") for it in containers)
    env = chain.from_iterable(items(it, "env") for it in containers)
    values = (it.get("valueFrom") or {} for it in env)
    return {
        *named(volumes, ("ConfigMap", "configMap", "name"), ("Secret", "secret", "secretName")),
        *named(projections, ("ConfigMap", "configMap", "name"), ("Secret", "secret", "name")),
        *named(env_from, ("ConfigMap", "configMapRef", "name"), ("Secret", "secretRef", "name")),
        *named(values, ("ConfigMap", "configMapKeyRef", "name"), ("Secret", "secretKeyRef", "name")),
    }


def items(parent: Object | None, field: str) -> list[Object]:
    """Return the elements of a list that may be missing."""
    return (parent or {}).get(field) or []


def named(parts: Iterable[Object], *places: tuple[str, str, str]) -> Iterator[Reference]:
    """Return the references in some parts. A place: the kind, the field, and its field with the name."""
    for part in parts:
        for kind, field, name in places:
            if isinstance(part.get(field), dict) and part[field].get(name):
                yield Reference(kind, part[field][name])
