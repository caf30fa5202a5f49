"""Reconciles the objects of a resource: compares what is with what should be, and logs it."""

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.metadata import Content, Description, Enqueue_Itself, Read, Subscription
from wit_world.exports.reconciler import Outcome, Outcome_Done
from wit_world.imports import cache, log
from wit_world.imports.types import (
    Entry,
    Error_NotFound,
    Failure_Retry,
    GroupVersionResource,
    Namespaces_All,
    Projection_Fields,
)
from wit_world.imports.work_queue import WorkKey

RESOURCE = GroupVersionResource("apps", "v1", "deployments")


class Metadata(exports.Metadata):
    def describe(self) -> Description:
        """Says what the plugin watches and reads. The host asks when it loads the plugin."""
        objects = Subscription(
            name="objects",
            target=RESOURCE,
            namespaces=Namespaces_All(),
            label_selector="",
            conditions=[],
            fields=[],
            content=Content.FULL,
            resync_seconds=0,
            enqueue=Enqueue_Itself(),
            ignore_own_writes=False,
        )
        return Description(
            name="my-plugin",
            version="0.1.0",
            subscriptions=[objects],
            reads=[Read("objects", RESOURCE, Namespaces_All(), content=Content.FULL, wakes=False)],
            indices=[],
            requests=[],
            schedules=[],
            stateless=True,
        )


class Reconciler(exports.Reconciler):
    def reconcile(self, key: WorkKey) -> Outcome:
        """Is called for an object after it appeared, changed or went."""
        object = key.object
        try:
            row = cache.get("objects", object, Projection_Fields(["/metadata/creationTimestamp"]))
        except Err as error:
            if isinstance(error.value, Error_NotFound):
                info("gone", namespace=object.namespace, name=object.name)
                return Outcome_Done()
            # The host calls again, later.
            raise Err(Failure_Retry(repr(error.value))) from error
        # Fields are JSON text.
        info("reconciled", namespace=object.namespace, name=object.name, created=row.fields[0] or "")
        return Outcome_Done()


def info(message: str, **pairs: str) -> None:
    """Writes a line to the log of the plugin."""
    log.log(log.Level.INFO, message, [Entry(name, value) for name, value in pairs.items()])
