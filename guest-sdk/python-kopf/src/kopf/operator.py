"""The operator: compares each object with what was handled last, and calls the handlers of the difference.

The state that must last is in annotations of the object, under the names that kopf uses: what was handled
last, and the progress of handlers that are not done. What kopf has in memory is in memory here: which objects
were seen, when timers are due, the indices. So the plugin is not stateless: a new instance receives all
objects again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from oarlock import (
    Added,
    Client,
    Deleted,
    Event,
    Lister,
    NotFound,
    ObjectKey,
    Plugin,
    Requeue,
    Resource,
    WorkKey,
    clock,
)

from . import registry, toolkit
from .filters import is_for
from .invocation import Progress, annotation_of, attempt, call, current_body, progress_of, subhandlers
from .registry import Handler
from .structs import FINALIZER, LAST_HANDLED, Body, Index, Patch, diff, essence, resolve

#: Resources of Kubernetes that may be named without their group and version.
_BUILT_IN = {
    **{name: f"v1/{name}" for name in ("configmaps", "namespaces", "nodes", "pods", "secrets", "services")},
    **{name: f"apps/v1/{name}" for name in ("daemonsets", "deployments", "replicasets", "statefulsets")},
    **{name: f"batch/v1/{name}" for name in ("cronjobs", "jobs")},
}


def plugin(name: str, version: str, *, resources: Mapping[str, str] | None = None) -> Plugin:
    """Return the plugin of all handlers that were registered.

    `resources` has what kopf asks the API server for: `{"widgets": "example.dev/v1/widgets"}`, for each name
    in a decorator that is neither built in nor given with group and version.
    """
    made = Plugin(name, version)
    by_resource: dict[Resource, list[Handler]] = {}
    for handler in registry.handlers:
        if handler.reason != "startup":
            by_resource.setdefault(_find(handler.resource, resources or {}), []).append(handler)
    indices: dict[str, Index[Any, Any]] = {
        handler.id: Index() for handler in registry.handlers if handler.reason == "index"
    }
    operators = [Operator(made, resource, handlers, indices) for resource, handlers in by_resource.items()]

    @made.on_start
    def start() -> None:
        logger = logging.LoggerAdapter(logging.getLogger(name), {})
        for handler in registry.handlers:
            if handler.reason == "startup":
                call(
                    handler.function, {"logger": logger, "settings": None, "memo": {}, "param": handler.param}
                )

    for operator in operators:
        operator.declare(operators)
    return made


def _find(named: str, resources: Mapping[str, str]) -> Resource:
    path = resources.get(named) or _BUILT_IN.get(named) or (named if "/" in named else None)
    if path is None:
        raise ValueError(
            f"{named!r} is not a built-in resource: name its group and version in "
            f'kopf.plugin(…, resources={{"{named}": "GROUP/VERSION/PLURAL"}})'
        )
    return Resource.parse(path)


@dataclass
class Memory:
    """What is known of an object in this instance."""

    memo: dict[str, Any] = field(default_factory=dict)
    is_resumed: bool = False
    essence: dict[str, Any] | None = None
    changed: datetime | None = None
    timers: dict[str, datetime] = field(default_factory=dict)
    timer_progress: dict[str, Progress] = field(default_factory=dict)


class Operator:
    """The handlers of one resource."""

    def __init__(
        self,
        plugin: Plugin,
        resource: Resource,
        handlers: list[Handler],
        indices: Mapping[str, Index[Any, Any]],
    ) -> None:
        self.plugin = plugin
        self.resource = resource
        self.handlers = handlers
        self.indices = indices
        self.memories: dict[ObjectKey, Memory] = {}
        self.has_indices = False
        self.cache: Lister = plugin.lister(resource)
        self.client: Client = plugin.client(resource, ["patch"])
        self.status: Client = plugin.client(resource._replace(subresource="status"), ["patch"])

    def declare(self, operators: Iterable[Operator]) -> None:
        """Declare the watches. Before its first call, the indices of all operators are filled."""
        watch = self.plugin.watch(self.resource)

        @watch.reconcile
        def reconcile(key: WorkKey) -> Requeue | None:
            for operator in operators:
                operator.fill_indices()
            wait = self.reconcile(ObjectKey(key.namespace, key.name))
            return None if wait is None else Requeue(after=max(wait, 0.001))

        if self.of("event"):
            events = self.plugin.watch(self.resource, name=f"{watch.name}-events")

            @events.on_event
            def handle(event: Event) -> None:
                self.handle_event(event)

    def of(self, *reasons: str) -> list[Handler]:
        """Return the handlers of some reasons."""
        return [handler for handler in self.handlers if handler.reason in reasons]

    def fill_indices(self) -> None:
        """Fill the indices with all objects, once."""
        if not self.has_indices:
            self.has_indices = True
            for body in self.cache.list() if self.of("index") else ():
                self.index(
                    ObjectKey(body["metadata"].get("namespace", ""), body["metadata"]["name"]), Body(body)
                )

    def index(self, key: ObjectKey, body: Body | None) -> None:
        """Note what the indices have of an object."""
        for handler in self.of("index"):
            values = None
            if body is not None:
                kwargs = self.kwargs(body, Memory())
                if is_for(handler, kwargs):
                    values = call(handler.function, {**kwargs, "param": handler.param})
            self.indices[handler.id].replace(f"{key.namespace}/{key.name}", values)

    def kwargs(self, body: Body, memory: Memory, **others: Any) -> dict[str, Any]:
        """Return the arguments of handlers."""
        metadata = body.metadata
        name = f"[{metadata.namespace}/{metadata.name}]" if metadata.namespace else f"[{metadata.name}]"
        return {
            **self.indices,
            "indices": self.indices,
            "body": body,
            "meta": metadata,
            "spec": body.spec,
            "status": body.status,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "memo": memory.memo,
            "resource": self.resource,
            "logger": ObjectLogger(logging.getLogger("kopf.objects"), {"object": name}),
            "patch": Patch(),
            **others,
        }

    def handle_event(self, event: Event) -> None:
        """Call the handlers of `on.event`, whose exceptions are logged."""
        type_ = (
            "ADDED" if isinstance(event, Added) else "DELETED" if isinstance(event, Deleted) else "MODIFIED"
        )
        body = Body(event.json())
        memory = self.memories.setdefault(ObjectKey(event.namespace, event.name), Memory())
        raw = {"type": type_, "object": body}
        kwargs = self.kwargs(body, memory, type=type_, event=raw)
        for handler in self.of("event"):
            if is_for(handler, kwargs):
                try:
                    call(handler.function, {**kwargs, "param": handler.param})
                except Exception:
                    kwargs["logger"].exception(
                        "Handler %r failed with an exception. Will ignore.", handler.id
                    )
        if type_ != "DELETED":
            self.write(body, kwargs["patch"])

    def reconcile(self, key: ObjectKey) -> float | None:
        """Handle the state of one object, and return the seconds until it wants to be handled again."""
        found = self.cache.get(key)
        body = None if found is None else Body(found)
        self.index(key, body)
        if body is None:
            self.memories.pop(key, None)
            return None
        toolkit.resources[self.resource.group, str(body.get("kind", "")).lower()] = self.resource
        memory = self.memories.setdefault(key, Memory())
        now = clock.now()
        if memory.essence != essence(body):
            memory.essence, memory.changed = essence(body), now
        wait, has_written = self.handle_change(body, memory, now)
        if has_written or "deletionTimestamp" in body.metadata:
            # The notification of the write adds the key again.
            return wait
        timers = self.run_timers(body, memory, now)
        return min((it for it in (wait, timers) if it is not None), default=None)

    def handle_change(self, body: Body, memory: Memory, now: datetime) -> tuple[float | None, bool]:
        """Call the handlers of the change since the object was handled last.

        Return the seconds until the next attempt, and whether the object was changed.
        """
        metadata, new = body.metadata, essence(body)
        handled = metadata.annotations.get(LAST_HANDLED)
        old = json.loads(handled) if handled else None
        is_going, is_held = "deletionTimestamp" in metadata, FINALIZER in metadata.get("finalizers", [])
        changes = diff(old, new)
        if is_going:
            reasons = ["delete", *([] if memory.is_resumed else ["resume"])]
            if not is_held:
                return None, False
        elif old is None:
            reasons = ["create", "field"]
        else:
            reasons = [*(["update", "field"] if changes else []), *([] if memory.is_resumed else ["resume"])]
        kwargs = self.kwargs(
            body, memory, old=old, new=new, diff=changes, reason=reasons[0] if reasons else None
        )
        chosen = [it for it in self.of(*reasons) if is_for(it, kwargs) and (not is_going or _runs_at_end(it))]
        needs_hold = any(not it.optional for it in self.of("delete"))
        patch: Patch = kwargs["patch"]
        if needs_hold and not is_held and not is_going:
            # Before any handler runs, so that the object cannot go without its delete handlers.
            patch.metadata["finalizers"] = [*metadata.get("finalizers", []), FINALIZER]
            return None, self.write(body, patch)
        wait = self.run(chosen, kwargs, now)
        if wait is None:
            memory.is_resumed = True
            for name in metadata.annotations:
                if name in {annotation_of(it) for it in self.known_ids(chosen, metadata.annotations)}:
                    patch.metadata.annotations[name] = None
            if is_going:
                others = [it for it in metadata.get("finalizers", []) if it != FINALIZER]
                patch.metadata["finalizers"] = others
            elif self.of("create", "update", "field", "delete", "resume") and old != new:
                patch.metadata.annotations[LAST_HANDLED] = json.dumps(new, separators=(",", ":"))
        return wait, self.write(body, patch)

    def known_ids(self, chosen: Iterable[Handler], annotations: Mapping[str, str]) -> set[str]:
        """Return the ids whose progress may be in annotations: of handlers, and of what they added."""
        ids = {it.id for it in chosen}
        children = {name.removeprefix("kopf.zalando.org/") for name in annotations}
        return ids | {name for name in children for it in ids if name.startswith(f"{it.replace('/', '.')}.")}

    def run(self, chosen: Iterable[Handler], kwargs: dict[str, Any], now: datetime) -> float | None:
        """Call handlers that are due, and note their progress. Return None if all are finished."""
        patch: Patch = kwargs["patch"]
        pending: list[float] = []
        for handler in chosen:
            before = progress_of(handler.id, kwargs["annotations"], now)
            if before.is_finished:
                continue
            due = datetime.fromisoformat(before.delayed) if before.delayed else now
            if due > now:
                pending.append((due - now).total_seconds())
                continue
            own = dict(kwargs)
            if handler.field is not None:
                own |= {state: resolve(kwargs[state], handler.field) for state in ("old", "new")}
                own["diff"] = diff(own["old"], own["new"])
            after, waits = self.attempt(handler, before, own, now)
            pending.extend(waits)
            if after.delayed is not None:
                pending.append((datetime.fromisoformat(after.delayed) - now).total_seconds())
            patch.metadata.annotations[annotation_of(handler.id)] = after.text()
        if pending:
            return min(pending)
        for handler in chosen:
            patch.metadata.annotations.pop(annotation_of(handler.id), None)
        return None

    def attempt(
        self, handler: Handler, before: Progress, kwargs: dict[str, Any], now: datetime
    ) -> tuple[Progress, list[float]]:
        """Call one handler, then the handlers that it added."""
        added: list[Handler] = []
        tokens = current_body.set(kwargs["body"]), subhandlers.set(added)
        try:
            patch: Patch = kwargs["patch"]

            def returned(result: Any) -> None:
                patch.status[handler.id] = result

            after = attempt(handler, before, kwargs, now, returned)
        finally:
            current_body.reset(tokens[0])
            subhandlers.reset(tokens[1])
        if not after.success or not added:
            return after, []
        children = [replace(it, id=f"{handler.id}/{it.id}") for it in added]
        wait = self.run(children, kwargs, now)
        if wait is None:
            return after, []
        # The handler runs again, to add those that are not finished.
        return Progress(after.started, after.retries), [wait]

    def run_timers(self, body: Body, memory: Memory, now: datetime) -> float | None:
        """Call the timers that are due, and return the seconds until the next."""
        kwargs = self.kwargs(body, memory)
        waits = []
        for handler in self.of("timer"):
            if not is_for(handler, kwargs):
                memory.timers.pop(handler.id, None)
                continue
            due = memory.timers.setdefault(handler.id, now + timedelta(seconds=handler.initial_delay))
            if handler.idle is not None and memory.changed is not None:
                due = max(due, memory.changed + timedelta(seconds=handler.idle))
            if due <= now:
                before = memory.timer_progress.get(handler.id) or Progress(now.isoformat())
                after, _ = self.attempt(handler, before, kwargs, now)
                if after.delayed is not None:
                    memory.timer_progress[handler.id] = after
                    due = datetime.fromisoformat(after.delayed)
                else:
                    memory.timer_progress.pop(handler.id, None)
                    due = now + timedelta(seconds=handler.interval) if handler.interval else datetime.max
                memory.timers[handler.id] = due if due != datetime.max else now + timedelta(days=3650)
                due = memory.timers[handler.id]
            if handler.interval or due > now:
                waits.append((due - now).total_seconds())
        self.write(body, kwargs["patch"])
        within = [wait for wait in waits if wait < 86_400 * 49]
        return min(within, default=None)

    def write(self, body: Body, patch: Patch) -> bool:
        """Make the changes of a patch, and return whether there are any.

        The status comes first: the rest says that the change was handled.
        """
        status = {"status": patch["status"]} if patch.get("status") else {}
        rest = {name: value for name, value in patch.items() if name not in ("metadata", "status") and value}
        # An empty list of finalizers is a change; empty labels and annotations are none.
        metadata = {name: it for name, it in patch.get("metadata", {}).items() if it or name == "finalizers"}
        rest |= {"metadata": metadata} if metadata else {}
        unchanged: Mapping[str, Any] | None = body
        written = None
        if status:
            try:
                written = self.status.patch(body, status, unchanged=unchanged)
                unchanged = None
            except NotFound:
                # The resource has no subresource of this name.
                rest |= status
        if rest:
            written = self.client.patch(body, rest, unchanged=unchanged)
        if written is None:
            return False
        self.cache.wait_until_seen(written)
        return True


class ObjectLogger(logging.LoggerAdapter):  # type: ignore[type-arg]
    """Begins each line with the name of the object, as kopf does."""

    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the line."""
        return f"{self.extra['object'] if self.extra else ''} {msg}", kwargs


def _runs_at_end(handler: Handler) -> bool:
    return handler.reason == "delete" or handler.deleted
