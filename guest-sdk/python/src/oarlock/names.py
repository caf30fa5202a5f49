"""Names of resources, objects and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ._values import instance, optional_text, text

_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")


class Resource(NamedTuple):
    """A resource, as its REST path names it: `v1/pods`, `apps/v1/deployments`, `v1/pods/status`."""

    group: str
    version: str
    plural: str
    subresource: str = ""

    @classmethod
    def parse(cls, path: str | Resource) -> Resource:
        """Parse `[GROUP/]VERSION/PLURAL[/SUBRESOURCE]`."""
        if isinstance(path, Resource):
            for name, part in path._asdict().items():
                text(f"resource.{name}", part)
            return path
        parts = text("resource", path).split("/")
        if parts and _VERSION.fullmatch(parts[0]):
            parts.insert(0, "")
        if len(parts) not in (3, 4) or not all(parts[1:]) or not _VERSION.fullmatch(parts[1]):
            raise ValueError(
                f"{path!r} is not a resource: write GROUP/VERSION/PLURAL, such as 'apps/v1/deployments', "
                "or VERSION/PLURAL for the core group, such as 'v1/pods'"
            )
        return cls(*parts)

    def __str__(self) -> str:
        return "/".join(part for part in self if part)


class ObjectKey(NamedTuple):
    """Names an object within its resource. The namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str


class ObjectRef(NamedTuple):
    """Names one version of one object."""

    namespace: str
    name: str
    uid: str
    resource_version: str


class WorkKey(NamedTuple):
    """A key of the work queue. The kind is usually the name of a watch; the plugin may choose others."""

    kind: str
    namespace: str = ""
    name: str = ""


@runtime_checkable
class Named(Protocol):
    """Anything with a namespace and a name: a key, a row, an event, a `Written`."""

    @property
    def namespace(self) -> str:
        """The namespace; empty for cluster-scoped objects."""

    @property
    def name(self) -> str:
        """The name."""


@runtime_checkable
class Versioned(Named, Protocol):
    """Anything that also has a uid and a resourceVersion: a row, an event, a `Written`."""

    @property
    def uid(self) -> str:
        """The uid."""

    @property
    def resource_version(self) -> str:
        """The resourceVersion, which is opaque: compare for equality only."""


class HasVersion(Protocol):
    """Anything with a resourceVersion."""

    @property
    def resource_version(self) -> str:
        """The resourceVersion, which is opaque: compare for equality only."""


AnyKey = Named | Mapping[str, Any]
"""What names an object: `ObjectKey`, `WorkKey`, a row, an event, a `Written`, or a whole object as a dict."""

AnyVersion = Versioned | Mapping[str, Any]
"""What names a version of an object: a row, an event, a `Written`, or a whole object as a dict."""


def key_of(named: AnyKey) -> ObjectKey:
    """Return the namespace and the name."""
    try:
        if isinstance(named, Mapping):
            metadata = named["metadata"]
            namespace, name = metadata.get("namespace", ""), metadata["name"]
            return ObjectKey(text("metadata.namespace", namespace), text("metadata.name", name))
        return ObjectKey(text("key.namespace", named.namespace), text("key.name", named.name))
    except (AttributeError, KeyError):
        raise TypeError(
            f"this {type(named).__name__} does not name an object: give ObjectKey(namespace, name), or a "
            "whole object as a dict, which has `metadata` with a `name`"
        ) from None


def ref_of(versioned: AnyVersion) -> ObjectRef:
    """Return the namespace, name, uid and resourceVersion."""
    try:
        if isinstance(versioned, Mapping):
            metadata = versioned["metadata"]
            uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
            named = metadata.get("namespace", ""), metadata["name"]
        else:
            uid, version = versioned.uid, versioned.resource_version
            named = versioned.namespace, versioned.name
    except (AttributeError, KeyError):
        raise _no_version(versioned) from None
    # No caller needs all of them: what is None is empty.
    return ObjectRef(
        optional_text("namespace", named[0]) or "",
        optional_text("name", named[1]) or "",
        optional_text("uid", uid) or "",
        optional_text("resourceVersion", version) or "",
    )


def version_of(seen: HasVersion | Mapping[str, Any]) -> str:
    """Return the resourceVersion, which is not empty."""
    if isinstance(seen, Mapping):
        version: str | None = ref_of(seen).resource_version
    elif hasattr(seen, "resource_version"):
        version = optional_text("resource_version", seen.resource_version)
    else:
        raise _no_version(seen)
    if version:
        return version
    raise ValueError(f"this {type(seen).__name__} has no resourceVersion: give what a write returned")


def regarding_of(named: AnyKey) -> ObjectRef:
    """Return what an Event is about; the uid and resourceVersion that are not known are empty."""
    namespace, name = key_of(named)
    if isinstance(named, Mapping):
        return ref_of(named)
    uid, version = getattr(named, "uid", ""), getattr(named, "resource_version", "")
    return ObjectRef(
        namespace,
        name,
        optional_text("uid", uid) or "",
        optional_text("resource_version", version) or "",
    )


def _no_version(given: object) -> TypeError:
    return TypeError(
        f"this {type(given).__name__} does not name a version of an object: give a row, an event, a "
        "`Written`, or a whole object as a dict, which has `metadata` with a `name`"
    )


def checked_work_key(name: str, key: WorkKey) -> WorkKey:
    """Return a key of the work queue, if it is one."""
    kind, namespace, object_name = instance(name, key, WorkKey, "a WorkKey")
    text(f"{name}.kind", kind)
    text(f"{name}.namespace", namespace)
    text(f"{name}.name", object_name)
    return key
