"""Reconciles the objects of a resource: compares what is with what should be, and logs it."""

from oarlock import Plugin, WorkKey, log

plugin = Plugin("my-plugin", "0.1.0", stateless=True)

cache = plugin.lister("apps/v1/deployments", name="objects")


@plugin.watch("apps/v1/deployments", name="objects").reconcile
def reconcile(key: WorkKey) -> None:
    """Look at an object after it appeared, changed or went. An exception has the host call again, later."""
    found = cache.get(key)
    if found is None:
        log.info("gone", namespace=key.namespace, name=key.name)
        return
    created = found["metadata"].get("creationTimestamp")
    log.info("reconciled", namespace=key.namespace, name=key.name, created=created)
