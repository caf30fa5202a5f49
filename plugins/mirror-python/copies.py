"""Compares the copies that a source should have with the copies that it has, and writes the difference."""

from typing import Any

from oarlock import AlreadyExists, OarlockError, ObjectKey, Retry, log

import sources
from kinds import Kind, namespace_cache

Object = dict[str, Any]


def reconcile(kind: Kind, source: ObjectKey) -> None:
    """Make the copies of one source match its annotation. A source that does not exist has no copies."""
    found = kind.cache.get(source)
    mirror_to = None if found is None else sources.mirror_to(found)
    wanted = set() if mirror_to is None else sources.targets(mirror_to, source.namespace, namespaces())
    existing = copies_of(kind, source)
    for namespace, copy in existing.items():
        if namespace not in wanted:
            delete(kind, source, copy)
    if found is None:
        return
    for namespace in sorted(wanted):
        if namespace in existing:
            update(kind, source, found, existing[namespace])
        else:
            create(kind, source, found, namespace)


def namespaces() -> list[str]:
    """Return the namespaces that can be written to: those that are not on their way out."""
    rows = namespace_cache.list(fields=["/metadata/deletionTimestamp"])
    return [row.name for row in rows if row.fields["/metadata/deletionTimestamp"] is None]


def copies_of(kind: Kind, source: ObjectKey) -> dict[str, Object]:
    """Return the copies by namespace. An object with another name is not a copy, whatever it says."""
    found: dict[str, Object] = {}
    for copy in kind.by_source.list(f"{source.namespace}/{source.name}"):
        metadata = copy["metadata"]
        if metadata["name"] == source.name and metadata["namespace"] != source.namespace:
            found[metadata["namespace"]] = copy
    return found


def create(kind: Kind, source: ObjectKey, found: Object, namespace: str) -> None:
    """Create a copy, unless another object has its name."""
    origin = f"{source.namespace}/{source.name}"
    copy: Object = {
        "apiVersion": "v1",
        "kind": kind.name,
        "metadata": {
            "name": source.name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "oarlock-mirror"},
            "annotations": {"oarlock.dev/mirrored-from": origin},
        },
    }
    copy |= {name: found[name] for name in (*kind.content, "type") if name in found}
    try:
        kind.client.create(copy)
    except AlreadyExists:
        # Either the cache does not have mirror's own copy yet, or another object has the name.
        other = kind.client.get(copy)
        if other is None:
            raise Retry(f"the object in {namespace} was just deleted") from None
        if other["metadata"].get("annotations", {}).get("oarlock.dev/mirrored-from") == origin:
            raise Retry(f"the copy in {namespace} is not in the cache yet") from None
        refuse(kind, source, found, namespace)
    else:
        log.info("copied", kind=kind.name, source=origin, to=namespace)


def update(kind: Kind, source: ObjectKey, found: Object, copy: Object) -> None:
    """Change a copy whose content differs."""
    if copy.get("type") != found.get("type"):
        # The API server does not change a type. The event of this delete has the copy created again.
        delete(kind, source, copy)
        return
    patch = difference(kind, copy, found)
    if patch:
        kind.client.patch(copy, patch, unchanged=copy)
        origin, namespace = f"{source.namespace}/{source.name}", copy["metadata"]["namespace"]
        log.info("updated", **{"kind": kind.name, "source": origin, "in": namespace})


def delete(kind: Kind, source: ObjectKey, copy: Object) -> None:
    """Delete a copy."""
    kind.client.delete(copy, unchanged=copy)
    origin, namespace = f"{source.namespace}/{source.name}", copy["metadata"]["namespace"]
    log.info("deleted", **{"kind": kind.name, "source": origin, "in": namespace})


def difference(kind: Kind, copy: Object, found: Object) -> Object:
    """Return the merge patch that makes a copy equal to its source."""
    patch: Object = {}
    for field in kind.content:
        old, new = copy.get(field) or {}, found.get(field) or {}
        changes = {name: None for name in old if name not in new}
        changes |= {name: value for name, value in new.items() if old.get(name) != value}
        if changes:
            patch[field] = changes
    return patch


def refuse(kind: Kind, source: ObjectKey, found: Object, namespace: str) -> None:
    """Report, as an Event of the source, that an object of another owner has the name of the copy."""
    origin = f"{source.namespace}/{source.name}"
    log.warning("not overwritten", **{"kind": kind.name, "source": origin, "in": namespace})
    note = f"{kind.name} {namespace}/{source.name} exists and is not a copy of this object"
    try:
        kind.recorder.warning(found, "MirrorRefused", note)
    except OarlockError as error:
        log.warning("no event recorded", error=str(error))
