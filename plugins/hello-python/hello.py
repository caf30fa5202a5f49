"""Logs every notification about ConfigMaps.

The same plugin exists in five languages. Each uses the contract in `wit/` directly, without an SDK, and shows one example of
each kind: declared fields, a field that it reads itself, a read of the cache, the configuration and the log.
"""

import json
from contextlib import contextmanager
from functools import cache as once
from typing import Iterator, Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.handler import Added, Deleted, Synced, Updated
from wit_world.exports.metadata import Content, Description, Enqueue_Nothing, Read, Subscription
from wit_world.imports import cache, config, event, log
from wit_world.imports.event import Version
from wit_world.imports.types import (
    Entry,
    Error_NotFound,
    Failure_Retry,
    GroupVersionResource,
    Namespaces_All,
    ObjectKey,
    ObjectRef,
    Projection_Fields,
)

NAME = "configmaps"

# The fields that every notification carries. The host skips updates that change none of them. Every update
# changes the resourceVersion, so the host skips none.
FIELDS = ["/metadata/resourceVersion", "/data/greeting"]
GREETING = 1


class Metadata(exports.Metadata):
    """The description of the plugin."""

    def describe(self) -> Description:
        configmaps = GroupVersionResource(group="", version="v1", plural="configmaps")
        return Description(
            name="hello-python",
            version="0.1.0",
            subscriptions=[
                Subscription(
                    name=NAME,
                    target=configmaps,
                    namespaces=Namespaces_All(),
                    label_selector=label_selector(),
                    conditions=[],
                    fields=FIELDS,
                    content=Content.FULL,
                    resync_seconds=0,
                    enqueue=Enqueue_Nothing(),
                    ignore_own_writes=False,
                )
            ],
            reads=[Read(NAME, configmaps, Namespaces_All(), content=Content.FULL, wakes=False)],
            indices=[],
            requests=[],
            schedules=[],
            stateless=False,
        )


class Handler(exports.Handler):
    """The notifications."""

    def on_add(self, added: Added) -> None:
        notice = Notice("add", added.subscription, added.object)
        notice.pair("initial", truth(added.is_in_initial_list))
        notice.finish(Version.NEW, added.object, added.fields)

    def on_update(self, updated: Updated) -> None:
        notice = Notice("update", updated.subscription, updated.object)
        notice.pair("old-resource-version", updated.old_resource_version)
        notice.text_pair("old-greeting", updated.old_fields[GREETING])
        notice.finish(Version.NEW, updated.object, updated.fields)

    def on_delete(self, deleted: Deleted) -> None:
        notice = Notice("delete", deleted.subscription, deleted.object)
        notice.pair("unknown", truth(deleted.final_state_unknown))
        notice.finish(Version.OLD, deleted.object, deleted.fields)

    def on_synced(self, synced: Synced) -> None:
        notice = Notice("synced", synced.subscription)
        notice.pair("remaining", str(synced.remaining))
        notice.log()


class Notice:
    """The pairs of the log line."""

    def __init__(self, type: str, subscription: str, object: Optional[ObjectRef] = None) -> None:
        self.pairs: list[Entry] = []
        self.pair("type", type)
        self.pair("subscription", subscription)
        if object is not None:
            self.pair("namespace", object.namespace)
            self.pair("name", object.name)
            self.pair("uid", object.uid)
            self.pair("resource-version", object.resource_version)

    def finish(self, which: Version, object: ObjectRef, fields: list[Optional[str]]) -> None:
        """Adds values from the declared fields, the event and the cache, and logs the line."""
        self.text_pair("greeting", fields[GREETING])
        with errors_retried():
            created = event.field(which, "/metadata/creationTimestamp")
            cached = is_cached(object)
        self.text_pair("created", created)
        self.pair("cached", truth(cached))
        self.log()

    def pair(self, name: str, value: str) -> None:
        self.pairs.append(Entry(name, value))

    def text_pair(self, name: str, field: Optional[str]) -> None:
        """Adds the string value of a field, if it has one."""
        value = text(field)
        if value is not None:
            self.pair(name, value)

    def log(self) -> None:
        if not is_quiet():
            log.log(log.Level.INFO, "notified", self.pairs)


def is_cached(object: ObjectRef) -> bool:
    """Returns whether the cache has the object with this uid, and not a later object of the same name."""
    key = ObjectKey(object.namespace, object.name)
    try:
        row = cache.get(NAME, key, Projection_Fields(["/metadata/uid"]))
    except Err as error:
        if isinstance(error.value, Error_NotFound):
            return False
        raise
    return text(row.fields[0]) == object.uid


@contextmanager
def errors_retried() -> Iterator[None]:
    """Has the host deliver the notification again later if a call to the host failed."""
    try:
        yield
    except Err as error:
        raise Err(Failure_Retry(repr(error.value))) from error


def label_selector() -> str:
    configured = config.get("/labelSelector")
    if configured is None:
        return "app=hello"
    selector = text(configured)
    if selector is None:
        raise Err("labelSelector in the configuration is not a string")
    return selector


@once
def is_quiet() -> bool:
    """Returns whether the configuration has `quiet: true`, which turns the log off."""
    return config.get("/quiet") == "true"


def text(field: Optional[str]) -> Optional[str]:
    """Returns the string value of a field, if the field has one."""
    if field is None:
        return None
    value = json.loads(field)
    return value if isinstance(value, str) else None


def truth(value: bool) -> str:
    return "true" if value else "false"
