"""Logs the objects of a resource when they appear, change and go."""

from oarlock import Added, Deleted, Plugin, Updated, log

plugin = Plugin("my-plugin", "0.1.0", stateless=True)

objects = plugin.watch("apps/v1/deployments", name="objects")


@objects.on_add
def added(event: Added) -> None:
    """Handle an object that exists, or was created."""
    # A field is read from the host by its JSON pointer.
    created = event.field("/metadata/creationTimestamp")
    log.info("added", namespace=event.namespace, name=event.name, created=created)


@objects.on_update
def updated(event: Updated) -> None:
    """Handle a change."""
    is_relabelled = event.field("/metadata/labels") != event.old.field("/metadata/labels")
    log.info("updated", namespace=event.namespace, name=event.name, relabelled=is_relabelled)


@objects.on_delete
def deleted(event: Deleted) -> None:
    """Handle an object that was deleted."""
    log.info("deleted", namespace=event.namespace, name=event.name)
