"""Restarts Deployments when a ConfigMap or Secret that their Pods read changes, as `kubectl rollout restart`.

The plugin watches Deployments only. It reads ConfigMaps and Secrets through listers that wake: a change of
one that the last run for a Deployment read adds the key of that Deployment again.
"""

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from oarlock import (
    EventRecorder,
    ObjectKey,
    Plugin,
    Requeue,
    Row,
    WorkKey,
    annotation,
    at,
    clock,
    config,
    equals,
    log,
    pointer,
)

from references import Reference, references

RESTART_ON_CHANGE = annotation("oarlock.dev/restart-on-change")

# The annotation of a Deployment with the hashes of what its Pods read.
OBSERVED = "oarlock.dev/observed-configuration"

# The annotation of the Pod template that `kubectl rollout restart` sets.
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

plugin = Plugin("rollout-restart", "0.1.0", stateless=True)


@dataclass
class Deployment:
    """The fields of a Deployment that count."""

    restart_on_change: str = at(RESTART_ON_CHANGE, default="")
    observed: str = at(annotation(OBSERVED), default="")
    restarted_at: str = at(pointer("spec", "template", "metadata", "annotations", RESTARTED_AT), default="")
    pods: dict[str, Any] = at("/spec/template/spec", default_factory=dict)


annotated = plugin.watch(
    "apps/v1/deployments",
    conditions=[equals(RESTART_ON_CHANGE, "true")],
    fields=[RESTART_ON_CHANGE, "/spec/template/spec"],
    ignore_own_writes=True,
)
deployments = plugin.lister("apps/v1/deployments")
content = {
    "ConfigMap": plugin.lister("v1/configmaps", wakes=True),
    "Secret": plugin.lister("v1/secrets", wakes=True),
}
client = plugin.client("apps/v1/deployments", ["patch"])
recorder = EventRecorder("apps/v1/deployments", "Deployment")


@dataclass
class Settings:
    """The configuration."""

    min_interval: timedelta = timedelta(seconds=30)


settings = Settings()


@plugin.on_start
def read_settings() -> None:
    """Read the configuration."""
    seconds = config.get("/minIntervalSeconds", 30)
    if not isinstance(seconds, int) or seconds < 0:
        raise ValueError(f"minIntervalSeconds in the configuration is not a number of seconds: {seconds!r}")
    settings.min_interval = timedelta(seconds=seconds)


@annotated.reconcile
def reconcile(key: WorkKey) -> Requeue | None:
    """Restart a Deployment if what its Pods read differs from what was observed last."""
    deployment = deployments.get(key, fields=Deployment)
    if deployment is None or deployment.fields.restart_on_change != "true":
        return None
    observed = parse(deployment.fields.observed)
    current = observe(key.namespace, deployment.fields.pods, observed)
    if current == observed:
        return None
    changed = sorted(it for it in current if it in observed and current[it] != observed[it])
    if not changed:
        # References that are new: they were part of a change of the template, which is a roll-out already.
        client.patch(
            deployment, {"metadata": {"annotations": {OBSERVED: text(current)}}}, unchanged=deployment
        )
        return None
    now = clock.now()
    wait = last_restart(deployment, now) + settings.min_interval - now
    if wait > timedelta():
        # Kubernetes' times have whole seconds.
        return Requeue(after=math.ceil(wait.total_seconds()))
    restart(deployment, current, now, changed)
    return None


def observe(namespace: str, pods: dict[str, Any], observed: dict[str, str]) -> dict[str, str]:
    """Return the hashes of what the Pods read.

    For what does not exist: the hash that was observed last, if any. A restart would not help: new Pods could
    not start without it.
    """
    current: dict[str, str] = {}
    for reference in sorted(references(pods)):
        found = hash_of(namespace, reference) or observed.get(str(reference))
        if found is not None:
            current[str(reference)] = found
    return current


def hash_of(namespace: str, reference: Reference) -> str | None:
    """Return a short hash of the content of a ConfigMap or Secret, if it exists."""
    key = ObjectKey(namespace, reference.name)
    row = content[reference.kind].get(key, fields=["/data", "/binaryData"])
    if row is None:
        return None
    text = json.dumps([row.fields["/data"], row.fields["/binaryData"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def restart(deployment: Row[Deployment], current: dict[str, str], now: datetime, changed: list[str]) -> None:
    """Have the Deployment's controller replace the Pods."""
    restarted = {"metadata": {"annotations": {RESTARTED_AT: now.strftime(TIME_FORMAT)}}}
    body = {"metadata": {"annotations": {OBSERVED: text(current)}}, "spec": {"template": restarted}}
    # If the Deployment changed meanwhile, this raises Conflict, and the host calls again.
    client.patch(deployment, body, unchanged=deployment)
    names = ", ".join(changed)
    log.info("restarted", namespace=deployment.namespace, name=deployment.name, changed=names)
    recorder.normal(deployment, "Restarted", f"Changed: {names}"[:1024])


def last_restart(deployment: Row[Deployment], now: datetime) -> datetime:
    """Return the time of the last restart, by this plugin or by a user; long ago if there was none."""
    try:
        then = datetime.fromisoformat(deployment.fields.restarted_at.replace("Z", "+00:00"))
        return min(then, now)
    except (TypeError, ValueError):
        return datetime.min.replace(tzinfo=now.tzinfo)


def parse(observed: str) -> dict[str, str]:
    """Return the hashes in the annotation; none if a user broke it."""
    try:
        found = json.loads(observed or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def text(current: dict[str, str]) -> str:
    """Return the annotation for some hashes."""
    return json.dumps(current, sort_keys=True, separators=(",", ":"))
