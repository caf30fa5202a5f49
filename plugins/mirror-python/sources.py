"""The sources, and the namespaces that they ask to be copied to."""

from collections.abc import Iterable
from typing import Any

from oarlock import ObjectKey, config

from kinds import Kind

# The namespaces that `*` does not include.
exclusions: frozenset[str] = frozenset()


def read_exclusions() -> None:
    """Read `excludedNamespaces` in the configuration."""
    global exclusions
    names = config.get("/excludedNamespaces", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"excludedNamespaces in the configuration is not a list of names: {names!r}")
    exclusions = frozenset(names)


def parse(annotation: object) -> ObjectKey | None:
    """Return the source that a copy's annotation names as `namespace/name`."""
    parts = annotation.split("/") if isinstance(annotation, str) else []
    return ObjectKey(*parts) if len(parts) == 2 and all(parts) else None


def mirror_to(source: dict[str, Any]) -> str | None:
    """Return the value of the annotation; None for what is no source: a copy, or an object that is going."""
    metadata = source["metadata"]
    annotations = metadata.get("annotations", {})
    if "oarlock.dev/mirrored-from" in annotations or "deletionTimestamp" in metadata:
        return None
    value = annotations.get("oarlock.dev/mirror-to")
    return value if isinstance(value, str) else None


def targets(mirror_to: str, own: str, existing: Iterable[str]) -> set[str]:
    """Return the existing namespaces that the annotation names, except the source's own."""
    named = {name.strip() for name in mirror_to.split(",")}
    everywhere = frozenset(existing)
    chosen = named & everywhere
    if "*" in named:
        chosen |= everywhere - exclusions
    return {*chosen} - {own}


def all_of(kind: Kind) -> set[ObjectKey]:
    """Return the keys of all sources of a kind."""
    return {
        ObjectKey(row.namespace, row.name)
        for value in kind.by_target.values()
        for row in kind.by_target.list(value, fields=[])
    }
