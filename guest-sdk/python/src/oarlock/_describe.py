"""The description of a plugin, in the types of the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wit_world.exports.metadata import (
    Content,
    Description,
    Enqueue,
    Enqueue_ControllerOwner,
    Enqueue_Itself,
    Enqueue_Key,
    Enqueue_Label,
    Enqueue_Nothing,
    Enqueue_Pointer,
    FieldCondition,
    Index,
    IndexSource,
    IndexSource_Label,
    IndexSource_OwnerUid,
    IndexSource_Pointer,
    NamedAt,
    OwnerKind,
    Read,
    Request,
    Schedule,
    Scope,
    Subscription,
    Test,
    Test_Absent,
    Test_Differs,
    Test_Equals,
    Test_Exists,
    Test_Greater,
    Test_In,
    Test_Less,
    Test_NotIn,
    Trigger,
    Trigger_At,
    Trigger_EverySeconds,
    WallTimes,
)

from . import cache, conditions, enqueue, watch
from ._wit import namespaces_of, resource_of, work_key_of
from .client import Client
from .names import WorkKey
from .plugin import Plugin

_TESTS: dict[conditions.Test, Callable[[list[str]], Test]] = {
    "exists": lambda _: Test_Exists(),
    "absent": lambda _: Test_Absent(),
    "equals": lambda texts: Test_Equals(texts[0]),
    "differs": lambda texts: Test_Differs(texts[0]),
    "in": Test_In,
    "not-in": Test_NotIn,
    "greater": lambda texts: Test_Greater(texts[0]),
    "less": lambda texts: Test_Less(texts[0]),
}


def describe(plugin: Plugin) -> Description:
    """Return the description of a plugin."""
    return Description(
        name=plugin.name,
        version=plugin.version,
        subscriptions=[_subscription(watch) for watch in plugin.watches.values()],
        reads=[_read(lister) for lister in plugin.listers.values()],
        indices=[_index(index) for index in plugin.indices.values()],
        requests=[_request(client) for client in plugin.clients],
        schedules=[_schedule(schedule) for schedule in plugin.schedules.values()],
        stateless=plugin.stateless,
    )


def _subscription(watch: watch.Watch[Any]) -> Subscription:
    return Subscription(
        name=watch.name,
        target=resource_of(watch.resource),
        namespaces=namespaces_of(watch.namespace),
        label_selector=watch.label_selector,
        conditions=[
            FieldCondition(condition.pointer, _TESTS[condition.test]([*condition.texts]))
            for condition in watch.conditions
        ],
        fields=[] if watch.shape is None else [*watch.shape.pointers],
        content=_content(watch.metadata_only),
        resync_seconds=watch.resync_seconds,
        enqueue=_enqueue(watch.enqueue),
        ignore_own_writes=watch.ignore_own_writes,
    )


def _enqueue(rule: enqueue.Enqueue | None) -> Enqueue:
    match rule:
        case None:
            return Enqueue_Nothing()
        case enqueue.Itself():
            return Enqueue_Itself()
        case enqueue.ControllerOwner():
            return Enqueue_ControllerOwner(OwnerKind(rule.group, rule.kind, _scope(rule.cluster_scoped)))
        case enqueue.NamedByField():
            return Enqueue_Pointer(NamedAt(rule.pointer, _scope(rule.cluster_scoped)))
        case enqueue.NamedByLabel():
            return Enqueue_Label(NamedAt(rule.label, _scope(rule.cluster_scoped)))
        case WorkKey():
            return Enqueue_Key(work_key_of(rule))


def _read(lister: cache.Lister) -> Read:
    target, chosen = resource_of(lister.resource), namespaces_of(lister.namespace)
    return Read(lister.name, target, chosen, _content(lister.metadata_only), lister.wakes)


def _index(index: cache.Index) -> Index:
    return Index(index.name, index.lister.name, _source(index))


def _source(index: cache.Index) -> IndexSource:
    if index.label is not None:
        return IndexSource_Label(index.label)
    return IndexSource_OwnerUid() if index.pointer is None else IndexSource_Pointer(index.pointer)


def _request(client: Client) -> Request:
    resource, chosen = client.resource, namespaces_of(client.namespace)
    return Request(resource_of(resource), chosen, [*client.verbs], resource.subresource)


def _schedule(schedule: watch.Schedule) -> Schedule:
    key = None if schedule.key is None else work_key_of(schedule.key)
    return Schedule(schedule.name, _trigger(schedule), schedule.at_start, key)


def _trigger(schedule: watch.Schedule) -> Trigger:
    if schedule.cron is not None:
        return Trigger_At(WallTimes(schedule.cron, schedule.time_zone))
    return Trigger_EverySeconds(schedule.every_seconds or 0)


def _content(metadata_only: bool) -> Content:
    return Content.METADATA if metadata_only else Content.FULL


def _scope(cluster_scoped: bool) -> Scope:
    return Scope.CLUSTER if cluster_scoped else Scope.SAME_NAMESPACE
