"""What handlers receive: the parts of an object, differences, and the patch."""

from __future__ import annotations

import copy
import enum
import logging
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from oarlock._values import finite

_K = TypeVar("_K")
_V = TypeVar("_V")

Spec = dict[str, Any]
Status = dict[str, Any]
Labels = dict[str, str]
Annotations = dict[str, str]
RawEvent = dict[str, Any]
RawBody = dict[str, Any]
Memo = dict[str, Any]
Logger = logging.LoggerAdapter[Any]

OWN_PREFIX = "kopf.zalando.org/"
LAST_HANDLED = OWN_PREFIX + "last-handled-configuration"
FINALIZER = OWN_PREFIX + "KopfFinalizerMarker"
#: Ten years, in seconds: a time that `datetime` can hold.
LONGEST_DELAY = 3650 * 86_400.0
_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"


class PermanentError(Exception):
    """The handler failed, and is not called again."""


class TemporaryError(Exception):
    """The handler failed, and is called again after the delay, in seconds."""

    #: A subclass whose `__init__` does not call this one has this delay.
    delay: float | None = 60

    def __init__(self, message: object = "", delay: float | None = 60) -> None:
        super().__init__(message)
        self.delay = None if delay is None else finite("delay", delay)


class ErrorsMode(enum.Enum):
    """What an exception that is neither temporary nor permanent means."""

    IGNORED = enum.auto()
    TEMPORARY = enum.auto()
    PERMANENT = enum.auto()


class MetaFilterToken(enum.Enum):
    """Values of a filter that are no values of a field."""

    PRESENT = enum.auto()
    ABSENT = enum.auto()


PRESENT = MetaFilterToken.PRESENT
ABSENT = MetaFilterToken.ABSENT


class Meta(dict[str, Any]):
    """The metadata of an object."""

    @property
    def labels(self) -> Labels:
        """The labels."""
        return self.get("labels") or {}

    @property
    def annotations(self) -> Annotations:
        """The annotations."""
        return self.get("annotations") or {}

    @property
    def name(self) -> str:
        """The name."""
        return str(self.get("name", ""))

    @property
    def namespace(self) -> str | None:
        """The namespace; None for cluster-scoped objects."""
        return self.get("namespace")

    @property
    def uid(self) -> str:
        """The uid."""
        return str(self.get("uid", ""))


class Body(dict[str, Any]):
    """An object."""

    @property
    def metadata(self) -> Meta:
        """The metadata."""
        return Meta(self.get("metadata") or {})

    @property
    def meta(self) -> Meta:
        """The metadata."""
        return self.metadata

    @property
    def spec(self) -> Spec:
        """The spec."""
        return self.get("spec") or {}

    @property
    def status(self) -> Status:
        """The status."""
        return self.get("status") or {}


class MetaPatch(dict[str, Any]):
    """Changes of the metadata."""

    @property
    def labels(self) -> MutableMapping[str, str | None]:
        """Changes of labels; None removes one."""
        found: MutableMapping[str, str | None] = self.setdefault("labels", {})
        return found

    @property
    def annotations(self) -> MutableMapping[str, str | None]:
        """Changes of annotations; None removes one."""
        found: MutableMapping[str, str | None] = self.setdefault("annotations", {})
        return found


class Patch(dict[str, Any]):
    """Changes of the object, as a JSON merge patch, which are made after the handlers."""

    @property
    def metadata(self) -> MetaPatch:
        """Changes of the metadata."""
        found = self.setdefault("metadata", MetaPatch())
        assert isinstance(found, MetaPatch)
        return found

    @property
    def meta(self) -> MetaPatch:
        """Changes of the metadata."""
        return self.metadata

    @property
    def spec(self) -> dict[str, Any]:
        """Changes of the spec."""
        found: dict[str, Any] = self.setdefault("spec", {})
        return found

    @property
    def status(self) -> dict[str, Any]:
        """Changes of the status."""
        found: dict[str, Any] = self.setdefault("status", {})
        return found


class DiffItem(NamedTuple):
    """A change of one field."""

    operation: str
    field: tuple[str, ...]
    old: Any
    new: Any


Diff = tuple[DiffItem, ...]


def diff(old: Any, new: Any, path: tuple[str, ...] = ()) -> Diff:
    """Return the changes from one value to another."""
    if old == new:
        return ()
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [*old, *(name for name in new if name not in old)]
        return tuple(item for name in names for item in diff(old.get(name), new.get(name), (*path, name)))
    operation = "add" if old is None else "remove" if new is None else "change"
    return (DiffItem(operation, path, old, new),)


def resolve(value: Any, field: Sequence[str]) -> Any:
    """Return the value of a field; None if it is not there."""
    for name in field:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value


def essence(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of an object whose changes are handled: not the status, and not what kopf writes."""
    kept = {name: copy.deepcopy(body[name]) for name in body if name not in _NOT_ESSENTIAL}
    metadata = body.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    foreign = {k: v for k, v in annotations.items() if not k.startswith(OWN_PREFIX) and k != _KUBECTL}
    parts = {"labels": metadata.get("labels") or {}, "annotations": foreign}
    essential = {name: dict(part) for name, part in parts.items() if part}
    return kept | ({"metadata": essential} if essential else {})


_NOT_ESSENTIAL = ("apiVersion", "kind", "metadata", "status")


class Index(Mapping[_K, _V], Generic[_K, _V]):
    """The values that the functions of an index returned, by key: a collection for each key."""

    def __init__(self) -> None:
        self._of: dict[str, Mapping[Any, Any]] = {}

    def replace(self, owner: str, values: Any) -> None:
        """Replace the values of one object; None removes them."""
        if values is None:
            self._of.pop(owner, None)
        else:
            self._of[owner] = values if isinstance(values, Mapping) else {None: values}

    def _all(self) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for values in self._of.values():
            for key, value in values.items():
                found.setdefault(key, []).append(value)
        return found

    def __getitem__(self, key: _K) -> _V:
        return cast(_V, self._all()[key])

    def __iter__(self) -> Iterator[_K]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
