"""The host, as the SDK sees it: the component's imports, or the fake host of a unit test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .errors import NoHost
from .names import ObjectKey, ObjectRef, Resource, WorkKey


class RawRow(NamedTuple):
    """One object in an answer, as JSON texts."""

    ref: ObjectRef
    fields: Sequence[str | None]
    json: str | None


class RawPage(NamedTuple):
    """One page of an answer. The token of the last page is empty."""

    rows: Sequence[RawRow]
    token: str


class Written(NamedTuple):
    """The object after a write."""

    name: str
    uid: str
    #: Pass the whole `Written` to `Lister.wait_until_seen` before reading the object from the cache.
    resource_version: str
    #: Empty for cluster-scoped objects.
    namespace: str = ""


class Preconditions(NamedTuple):
    """Conditions of a write. If one does not hold, the write raises `Conflict`."""

    uid: str | None = None
    resource_version: str | None = None


#: What an answer carries of each object: the values at these pointers, or the whole object. Without pointers,
#: the object's names only.
Projection = Sequence[str] | None


class Host(Protocol):
    """The imports of the contract, with JSON as text. A failed call raises an `OarlockError`."""

    def event_field(self, old: bool, pointer: str) -> str | None: ...

    def event_fields(self, old: bool, pointers: Sequence[str]) -> Sequence[str | None]: ...

    def event_json(self, old: bool) -> str: ...

    def cache_get(self, lister: str, key: ObjectKey, projection: Projection) -> RawRow: ...

    def cache_list(
        self, lister: str, namespace: str | None, label_selector: str, projection: Projection, token: str
    ) -> RawPage: ...

    def cache_by_index(
        self, index: str, value: str, namespace: str | None, projection: Projection, token: str
    ) -> RawPage: ...

    def cache_index_values(self, index: str) -> Sequence[str]: ...

    def cache_has_synced(self, lister: str) -> bool: ...

    def cache_wait_until_seen(self, lister: str, resource_version: str, timeout_ms: int) -> None: ...

    def client_get(self, resource: Resource, key: ObjectKey) -> str: ...

    def client_list(
        self,
        resource: Resource,
        namespace: str | None,
        label_selector: str,
        field_selector: str,
        projection: Projection,
        limit: int,
        token: str,
    ) -> RawPage: ...

    def client_create(self, resource: Resource, namespace: str, json: str) -> Written: ...

    def client_apply(
        self, resource: Resource, key: ObjectKey, json: str, force: bool, preconditions: Preconditions
    ) -> Written: ...

    def client_patch(
        self, resource: Resource, key: ObjectKey, kind: str, body: str, preconditions: Preconditions
    ) -> Written: ...

    def client_replace(self, resource: Resource, key: ObjectKey, json: str) -> Written: ...

    def client_delete(
        self,
        resource: Resource,
        key: ObjectKey,
        propagation: str,
        grace_period_seconds: int | None,
        preconditions: Preconditions,
    ) -> None: ...

    def queue_add(self, key: WorkKey, delay_ms: int | None) -> None: ...

    def emit(
        self, resource: Resource, regarding: ObjectRef, kind: str, warning: bool, reason: str, note: str
    ) -> None: ...

    def log(self, level: str, message: str, pairs: Mapping[str, str]) -> None: ...

    def log_enabled(self, level: str) -> bool: ...

    def now(self) -> tuple[int, int]: ...

    def elapsed_ms(self) -> float: ...

    def config_get(self, pointer: str) -> str | None: ...

    def config_json(self) -> str: ...

    def counter_add(self, name: str, by: float, labels: Mapping[str, str]) -> None: ...

    def gauge_set(self, name: str, value: float, labels: Mapping[str, str]) -> None: ...


_current: Host | None = None


def current() -> Host:
    """Return the host of the call that is in progress."""
    if _current is None:
        raise NoHost(
            "the host cannot be called here: a module is imported when the component is built, without a "
            "host. Move the call into a handler, or into a function with @plugin.on_start. In a unit test: "
            "make the call inside of `with oarlock.testing.FakeHost(plugin):`."
        )
    return _current


def is_there() -> bool:
    """Return whether a host can be called."""
    return _current is not None


def replace(host: Host | None) -> Host | None:
    """Make this the host, and return the one before."""
    global _current
    before, _current = _current, host
    return before
