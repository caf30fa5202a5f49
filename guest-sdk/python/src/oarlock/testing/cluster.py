"""Objects in memory, with the writes of the API server."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from .._host import Preconditions
from ..errors import AlreadyExists, Conflict, Invalid, NotFound
from ..names import ObjectKey, Resource, key_of
from .selectors import MISSING, resolve

Object = dict[str, Any]
Change = Callable[[Object], Object]
Changed = Callable[[Resource, Object | None, Object | None], None]


class Cluster:
    """The objects of all resources. `changed` receives each change: the state before, and after."""

    def __init__(self, changed: Changed) -> None:
        self._objects: dict[Resource, dict[ObjectKey, Object]] = {}
        self._changed = changed
        self._version = 0

    def all(self, resource: Resource) -> list[Object]:
        """Return the objects of a resource, by key."""
        return [found for _, found in sorted(self._objects.get(resource, {}).items())]

    def get(self, resource: Resource, key: ObjectKey) -> Object:
        """Return an object, or raise `NotFound`."""
        found = self._objects.get(_whole(resource), {}).get(key)
        if found is None:
            raise NotFound(f"{_whole(resource)} {key.namespace}/{key.name}")
        return found

    def create(self, resource: Resource, namespace: str, body: Object) -> Object:
        """Create an object."""
        metadata = body.get("metadata", {})
        name = metadata.get("name") or f"{metadata.get('generateName', '')}{self._version:05}"
        key = ObjectKey(namespace, name)
        if key in self._objects.get(resource, {}):
            raise AlreadyExists(f"{resource} {namespace}/{name}")
        return self.put(resource, key, body)

    def put(self, resource: Resource, key: ObjectKey, body: Object) -> Object:
        """Create or replace an object."""
        objects = self._objects.setdefault(resource, {})
        before = objects.get(key)
        after = copy.deepcopy(body)
        metadata = after.setdefault("metadata", {})
        self._version += 1
        metadata["name"] = key.name
        if key.namespace:
            metadata["namespace"] = key.namespace
        own_uid = metadata.get("uid") or f"uid-{self._version}"
        metadata["uid"] = before["metadata"]["uid"] if before else own_uid
        metadata["resourceVersion"] = str(self._version)
        objects[key] = after
        self._changed(resource, before, after)
        return after

    def apply(self, resource: Resource, key: ObjectKey, body: Object, conditions: Preconditions) -> Object:
        """Merge the fields of a body into an object, or create it."""
        if resource.subresource or key in self._objects.get(resource, {}):
            return self.merge(resource, key, body, conditions)
        if conditions.uid or conditions.resource_version:
            raise Conflict(f"{resource} {key.namespace}/{key.name} does not exist")
        return self.put(resource, key, body)

    def merge(self, resource: Resource, key: ObjectKey, patch: Object, conditions: Preconditions) -> Object:
        """Change an object by a JSON merge patch."""
        return self._change(resource, key, conditions, lambda before: cast(Object, merged(before, patch)))

    def edit(
        self, resource: Resource, key: ObjectKey, operations: Sequence[Object], conditions: Preconditions
    ) -> Object:
        """Change an object by a JSON patch."""

        def edited(before: Object) -> Object:
            after = copy.deepcopy(before)
            for operation in operations:
                _edit(after, operation)
            return after

        return self._change(resource, key, conditions, edited)

    def replace(self, resource: Resource, key: ObjectKey, body: Object) -> Object:
        """Replace an object by a changed copy of it."""
        version = resolve(body, "/metadata/resourceVersion")
        if version is MISSING:
            raise Invalid("replace takes a changed copy of what get or list returned")
        return self._change(resource, key, Preconditions(None, version), lambda _: copy.deepcopy(body))

    def delete(self, resource: Resource, key: ObjectKey, conditions: Preconditions) -> None:
        """Delete an object, or mark it as being deleted if it has finalizers."""
        before = self.get(resource, key)
        _check(before, conditions)
        if before["metadata"].get("finalizers"):
            if "deletionTimestamp" not in before["metadata"]:
                self.put(resource, key, merged(before, {"metadata": {"deletionTimestamp": DELETED_AT}}))
            return
        del self._objects[resource][key]
        self._changed(resource, before, None)

    def _change(
        self,
        resource: Resource,
        key: ObjectKey,
        conditions: Preconditions,
        change: Change,
    ) -> Object:
        before = self.get(resource, key)
        _check(before, conditions)
        after: Object
        if resource.subresource == "scale":
            # A scale shows the replicas of its object.
            shown = {"metadata": before["metadata"], "spec": {"replicas": resolve(before, "/spec/replicas")}}
            replicas = change(shown)["spec"]["replicas"]
            after = merged(before, {"spec": {"replicas": replicas}})
        else:
            after = change(before)
        demanded = resolve(after, "/metadata/resourceVersion")
        if demanded not in (MISSING, before["metadata"]["resourceVersion"]):
            raise Conflict(f"{resource} {key.namespace}/{key.name} is not at version {demanded}")
        if resource.subresource == "status":
            after = {**before, "status": after.get("status")}
        if after == before:
            return before
        metadata = after["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            del self._objects[_whole(resource)][key]
            self._changed(_whole(resource), before, None)
            return after
        return self.put(_whole(resource), key, after)


#: The time at which objects with finalizers are deleted.
DELETED_AT = "2026-01-01T00:00:00Z"


def merged(before: Any, patch: Any) -> Any:
    """Return the result of a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    after = copy.deepcopy(dict(before)) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        else:
            after[name] = merged(after.get(name), value)
    return after


def _edit(value: Any, operation: Object) -> None:
    action, path = operation["op"], operation["path"]
    parent_path, _, last = path.rpartition("/")
    parent = resolve(value, parent_path)
    name = last.replace("~1", "/").replace("~0", "~")
    if action == "test":
        if resolve(value, path) != operation["value"]:
            raise Invalid(f"the test of {path} failed")
    elif isinstance(parent, list) and action in ("add", "replace", "remove"):
        position = len(parent) if name == "-" else int(name)
        parent[position : position + (action != "add")] = [] if action == "remove" else [operation["value"]]
    elif isinstance(parent, dict) and action in ("add", "replace"):
        parent[name] = operation["value"]
    elif isinstance(parent, dict) and action == "remove" and name in parent:
        del parent[name]
    else:
        raise Invalid(f"the operation {json.dumps(operation)} does not fit the object")


def _check(before: Object, conditions: Preconditions) -> None:
    metadata = before["metadata"]
    for demanded, is_now in (
        (conditions.uid, metadata["uid"]),
        (conditions.resource_version, metadata["resourceVersion"]),
    ):
        if demanded is not None and demanded != is_now:
            raise Conflict(f"{key_of(before)} is at {is_now}, not at {demanded}")


def _whole(resource: Resource) -> Resource:
    return resource._replace(subresource="")
