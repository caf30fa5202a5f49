"""The host of a component: the imports of the contract, through the bindings of componentize-py."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

from componentize_py_types import Err
from wit_world.imports import cache, client, clock, config, event, events, log, metrics, types, work_queue

from . import errors
from ._host import Preconditions, Projection, RawPage, RawRow, Written
from .names import ObjectKey, ObjectRef, Resource, WorkKey

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ERRORS: dict[type[Any], type[errors.OarlockError]] = {
    types.Error_NotFound: errors.NotFound,
    types.Error_AlreadyExists: errors.AlreadyExists,
    types.Error_Conflict: errors.Conflict,
    types.Error_Forbidden: errors.Forbidden,
    types.Error_Invalid: errors.Invalid,
    types.Error_Unavailable: errors.Unavailable,
    types.Error_Timeout: errors.Timeout,
    types.Error_Gone: errors.Gone,
    types.Error_NotDeclared: errors.NotDeclared,
    types.Error_NotSynced: errors.NotSynced,
    types.Error_LimitExceeded: errors.LimitExceeded,
    types.Error_Suspended: errors.Suspended,
}
_LEVELS = {level.name.lower(): level for level in log.Level}
_PATCHES = {
    "json": client.PatchKind.JSON_PATCH,
    "merge": client.PatchKind.MERGE_PATCH,
    "strategic": client.PatchKind.STRATEGIC_MERGE_PATCH,
}
_PROPAGATIONS = {propagation.name.lower(): propagation for propagation in client.Propagation}
_ALL = types.Namespaces_All()


def _raises(call: Callable[_P, _R]) -> Callable[_P, _R]:
    """Raise errors of the contract as the SDK's exceptions."""

    @functools.wraps(call)
    def translated(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return call(*args, **kwargs)
        except Err as error:
            _raise(error.value)

    return translated


def _raise(error: Any) -> NoReturn:
    if isinstance(error, types.Error_Throttled):
        after_ms = error.value.retry_after_ms
        raise errors.Throttled(error.value.message, None if after_ms is None else after_ms / 1000) from None
    raise _ERRORS[type(error)](error.value) from None


def namespaces_of(namespace: str | None) -> types.Namespaces:
    """Return the choice of namespaces."""
    return _ALL if namespace is None else types.Namespaces_One(namespace)


def resource_of(resource: Resource) -> types.GroupVersionResource:
    """Return the resource without its subresource."""
    return types.GroupVersionResource(resource.group, resource.version, resource.plural)


def ref_of(ref: types.ObjectRef) -> ObjectRef:
    """Return the names of a version of an object."""
    return ObjectRef(ref.namespace, ref.name, ref.uid, ref.resource_version)


def work_key_of(key: WorkKey) -> work_queue.WorkKey:
    """Return a key of the work queue."""
    return work_queue.WorkKey(key.kind, types.ObjectKey(key.namespace, key.name))


def _key(key: ObjectKey) -> types.ObjectKey:
    return types.ObjectKey(key.namespace, key.name)


def _projection(projection: Projection) -> types.Projection:
    if projection is None:
        return types.Projection_Json()
    return types.Projection_Fields([*projection]) if projection else types.Projection_Keys()


def _row(row: types.Row) -> RawRow:
    return RawRow(ref_of(row.object), row.fields, row.json)


def _page(page: types.Page) -> RawPage:
    return RawPage([_row(row) for row in page.rows], page.continue_token)


def _written(written: client.Written) -> Written:
    return Written(written.name, written.uid, written.resource_version)


def _preconditions(preconditions: Preconditions) -> client.Preconditions:
    return client.Preconditions(preconditions.uid, preconditions.resource_version)


def _entries(pairs: Mapping[str, str]) -> list[types.Entry]:
    return [types.Entry(name, value) for name, value in pairs.items()]


def _version(old: bool) -> event.Version:
    return event.Version.OLD if old else event.Version.NEW


class WitHost:
    """Calls the imports of the component."""

    @_raises
    def event_field(self, old: bool, pointer: str) -> str | None:
        return event.field(_version(old), pointer)

    @_raises
    def event_fields(self, old: bool, pointers: Sequence[str]) -> Sequence[str | None]:
        return event.fields(_version(old), [*pointers])

    @_raises
    def event_json(self, old: bool) -> str:
        return event.json(_version(old))

    @_raises
    def cache_get(self, lister: str, key: ObjectKey, projection: Projection) -> RawRow:
        return _row(cache.get(lister, _key(key), _projection(projection)))

    @_raises
    def cache_list(
        self, lister: str, namespace: str | None, label_selector: str, projection: Projection, token: str
    ) -> RawPage:
        request = types.PageRequest(0, token)
        chosen = namespaces_of(namespace)
        return _page(cache.list(lister, chosen, label_selector, _projection(projection), request))

    @_raises
    def cache_by_index(
        self, index: str, value: str, namespace: str | None, projection: Projection, token: str
    ) -> RawPage:
        request = types.PageRequest(0, token)
        chosen = namespaces_of(namespace)
        return _page(cache.by_index(index, value, chosen, _projection(projection), request))

    @_raises
    def cache_index_values(self, index: str) -> Sequence[str]:
        return cache.index_values(index)

    @_raises
    def cache_has_synced(self, lister: str) -> bool:
        return cache.has_synced(lister)

    @_raises
    def cache_wait_until_seen(self, lister: str, resource_version: str, timeout_ms: int) -> None:
        cache.wait_until_seen(lister, resource_version, timeout_ms)

    @_raises
    def client_get(self, resource: Resource, key: ObjectKey) -> str:
        return client.get(resource_of(resource), _key(key), resource.subresource)

    @_raises
    def client_list(
        self,
        resource: Resource,
        namespace: str | None,
        label_selector: str,
        field_selector: str,
        projection: Projection,
        limit: int,
        token: str,
    ) -> RawPage:
        target, chosen = resource_of(resource), namespaces_of(namespace)
        request = types.PageRequest(limit, token)
        projected = _projection(projection)
        return _page(client.list(target, chosen, label_selector, field_selector, projected, request))

    @_raises
    def client_create(self, resource: Resource, namespace: str, json: str) -> Written:
        return _written(client.create(resource_of(resource), namespace, json))

    @_raises
    def client_apply(
        self, resource: Resource, key: ObjectKey, json: str, force: bool, preconditions: Preconditions
    ) -> Written:
        target, conditions = resource_of(resource), _preconditions(preconditions)
        return _written(client.apply(target, _key(key), resource.subresource, json, force, conditions))

    @_raises
    def client_patch(
        self, resource: Resource, key: ObjectKey, kind: str, body: str, preconditions: Preconditions
    ) -> Written:
        target, conditions = resource_of(resource), _preconditions(preconditions)
        patch = _PATCHES[kind]
        return _written(client.patch(target, _key(key), resource.subresource, patch, body, conditions))

    @_raises
    def client_replace(self, resource: Resource, key: ObjectKey, json: str) -> Written:
        return _written(client.replace(resource_of(resource), _key(key), resource.subresource, json))

    @_raises
    def client_delete(
        self,
        resource: Resource,
        key: ObjectKey,
        propagation: str,
        grace_period_seconds: int | None,
        preconditions: Preconditions,
    ) -> None:
        target, conditions = resource_of(resource), _preconditions(preconditions)
        client.delete(target, _key(key), _PROPAGATIONS[propagation], grace_period_seconds, conditions)

    @_raises
    def queue_add(self, key: WorkKey, delay_ms: int | None) -> None:
        if delay_ms is None:
            work_queue.add(work_key_of(key))
        else:
            work_queue.add_after(work_key_of(key), delay_ms)

    @_raises
    def emit(
        self, resource: Resource, regarding: ObjectRef, kind: str, warning: bool, reason: str, note: str
    ) -> None:
        type_ = events.EventType.WARNING if warning else events.EventType.NORMAL
        events.emit(resource_of(resource), types.ObjectRef(*regarding), kind, type_, reason, note)

    def log(self, level: str, message: str, pairs: Mapping[str, str]) -> None:
        log.log(_LEVELS[level], message, _entries(pairs))

    def log_enabled(self, level: str) -> bool:
        return log.enabled(_LEVELS[level])

    def now(self) -> tuple[int, int]:
        now = clock.now()
        return now.seconds, now.nanoseconds

    def elapsed_ms(self) -> float:
        return clock.elapsed_ms()

    @_raises
    def config_get(self, pointer: str) -> str | None:
        return config.get(pointer)

    def config_json(self) -> str:
        return config.json()

    @_raises
    def counter_add(self, name: str, by: float, labels: Mapping[str, str]) -> None:
        metrics.counter_add(name, by, _entries(labels))

    @_raises
    def gauge_set(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        metrics.gauge_set(name, value, _entries(labels))
