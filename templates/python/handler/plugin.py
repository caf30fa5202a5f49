"""Logs the objects of a resource when they appear, change and go."""

from contextlib import contextmanager
from typing import Iterator

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.handler import Added, Deleted, Synced, Updated
from wit_world.exports.metadata import Content, Description, Enqueue_Nothing, Subscription
from wit_world.imports import event, log
from wit_world.imports.event import Version
from wit_world.imports.types import Entry, Failure_Retry, GroupVersionResource, Namespaces_All


class Metadata(exports.Metadata):
    def describe(self) -> Description:
        """Says what the plugin watches. The host asks when it loads the plugin."""
        objects = Subscription(
            name="objects",
            target=GroupVersionResource("apps", "v1", "deployments"),
            namespaces=Namespaces_All(),
            label_selector="",
            conditions=[],
            fields=[],
            content=Content.FULL,
            resync_seconds=0,
            enqueue=Enqueue_Nothing(),
            ignore_own_writes=False,
        )
        return Description(
            name="my-plugin",
            version="0.1.0",
            subscriptions=[objects],
            reads=[],
            indices=[],
            requests=[],
            schedules=[],
            stateless=True,
        )


class Handler(exports.Handler):
    def on_add(self, added: Added) -> None:
        with retried():
            # Fields are read by their JSON pointers, as JSON text.
            created = event.field(Version.NEW, "/metadata/creationTimestamp")
        info("added", namespace=added.object.namespace, name=added.object.name, created=created or "")

    def on_update(self, updated: Updated) -> None:
        info("updated", namespace=updated.object.namespace, name=updated.object.name)

    def on_delete(self, deleted: Deleted) -> None:
        info("deleted", namespace=deleted.object.namespace, name=deleted.object.name)

    def on_synced(self, synced: Synced) -> None:
        """All objects that existed when the plugin started have been handled."""


def info(message: str, **pairs: str) -> None:
    """Writes a line to the log of the plugin."""
    log.log(log.Level.INFO, message, [Entry(name, value) for name, value in pairs.items()])


@contextmanager
def retried() -> Iterator[None]:
    """After an error of the host, it calls again with the same object, later."""
    try:
        yield
    except Err as error:
        raise Err(Failure_Retry(repr(error.value))) from error
