"""A host in memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _host
from .._durations import Duration, seconds
from .._host import Preconditions
from .._values import json_text, mapping
from ..enqueue import ControllerOwner, Enqueue, Itself, NamedByField, NamedByLabel
from ..errors import NotFound
from ..event import Added, Deleted, Synced, Updated, begin
from ..log import connect_logging, disconnect_logging
from ..names import AnyKey, ObjectKey, Resource, WorkKey, checked_work_key, key_of, ref_of
from ..plugin import Plugin
from ..watch import Watch
from .cluster import Object
from .imports import Imports, texts_at
from .selectors import condition_holds, labels_match, resolve

if TYPE_CHECKING:
    from typing_extensions import Self


class FakeHost(Imports):
    """Runs a plugin with a cluster in memory, inside of a `with` block."""

    def __init__(self, plugin: Plugin, *, config: Mapping[str, Any] | None = None) -> None:
        super().__init__(plugin, config)
        self._notifications: deque[Callable[[], None]] = deque()
        self._in_call = False
        self._is_initial = False
        self._before: _host.Host | None = None

    # === what a test does ===

    def __enter__(self) -> Self:
        self._before = _host.replace(self)
        connect_logging()
        try:
            self.plugin.start()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        disconnect_logging()
        _host.replace(self._before)

    def apply(self, resource: str | Resource, body: Mapping[str, Any], *, initial: bool = False) -> Object:
        """Create or replace an object, as a user would, and deliver the notifications.

        With `initial` the object existed before the plugin started: its add is one of the initial list.
        """
        self._is_initial = initial
        parsed = json.loads(json_text("body", mapping("body", body)))
        after = self._cluster.put(Resource.parse(resource), key_of(parsed), parsed)
        self._deliver()
        return after

    def delete(self, resource: str | Resource, key: AnyKey) -> None:
        """Delete an object, as a user would, and deliver the notifications."""
        self._cluster.delete(Resource.parse(resource), key_of(key), Preconditions())
        self._deliver()

    def object(self, resource: str | Resource, namespace: str, name: str) -> Object | None:
        """Return an object of the cluster."""
        try:
            return self._cluster.get(Resource.parse(resource), ObjectKey(namespace, name))
        except NotFound:
            return None

    def synced(self) -> None:
        """Call the handlers of `on_synced`."""
        watches = [*self.plugin.watches.values()]
        for position, watch in enumerate(watches):
            event = Synced(watch.name, len(watches) - 1 - position)
            self._call(lambda watch=watch, event=event: watch.call("on_synced", event))  # type: ignore[misc]

    def fire(self, schedule: str) -> None:
        """Add the key of a schedule to the work queue."""
        declared = self.plugin.schedules[schedule]
        self.queue_add(declared.key or WorkKey(declared.name), None)

    def advance(self, duration: Duration) -> None:
        """Let time pass. Schedules do not fire by themselves; see `fire`."""
        self.time += timedelta(seconds=seconds(duration))

    def run(self) -> None:
        """Reconcile the keys that are due, until none is."""
        for _ in range(10_000):
            due = [key for key, time in self.queue.items() if time <= self.time]
            if not due:
                return
            self.reconcile(due[0])
        raise AssertionError(f"the work queue does not become empty: {due[0]} is added again and again")

    def reconcile(self, key: WorkKey) -> None:
        """Reconcile one key."""
        self.queue.pop(checked_work_key("key", key), None)
        self._reading, self._reads[key] = key, set()
        try:
            self._call(lambda: self._reconcile(key))
        finally:
            self._reading = None

    # === calls of the plugin ===

    def _reconcile(self, key: WorkKey) -> None:
        requeue = self.plugin.run_reconcile(key)
        if requeue is not None:
            self.queue_add(key, requeue.after_ms)

    def _call(self, call: Callable[[], None]) -> None:
        self._in_call = True
        try:
            call()
        finally:
            self._in_call = False
            begin(None)
        self._deliver()

    def _deliver(self) -> None:
        while self._notifications and not self._in_call:
            self._notifications.popleft()()

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        # The contract names these writes: see `ignore-own-writes`.
        is_own = self._in_call and self._demands_version
        for watch in self.plugin.watches.values():
            if watch.resource == resource:
                self._notify(watch, before, after, is_own)
        names = key_of(after or before or {})
        for key, reads in self._reads.items():
            if reads & {(resource, None), (resource, names)}:
                self.queue_add(key, None)

    def _notify(self, watch: Watch[Any], before: Object | None, after: Object | None, is_own: bool) -> None:
        old = before if before is not None and _matches(watch, before) else None
        new = after if after is not None and _matches(watch, after) else None
        skips = watch.ignore_own_writes and is_own and new is not None
        if (old is None and new is None) or skips:
            return
        if watch.enqueue is not None:
            for state in (old, new):
                if state is not None:
                    self._enqueue(watch, watch.enqueue, state)
            return
        if old is not None and new is not None and watch.shape is not None:
            pointers = watch.shape.pointers
            if texts_at(pointers, old) == texts_at(pointers, new) and not _is_going(old, new):
                return
        is_initial = self._is_initial and not self._in_call
        self._notifications.append(lambda: self._call(lambda: self._handle(watch, old, new, is_initial)))

    def _handle(self, watch: Watch[Any], old: Object | None, new: Object | None, is_initial: bool) -> None:
        self._event = (old, new)
        pointers = () if watch.shape is None else watch.shape.pointers
        ref = ref_of(new or old or {})
        new_texts = [] if new is None else texts_at(pointers, new)
        old_texts = [] if old is None else texts_at(pointers, old)
        event: Added[Any] | Updated[Any] | Deleted[Any]
        if old is None:
            event = Added(watch.name, ref, watch.shape, new_texts, is_initial)
        elif new is None:
            event = Deleted(watch.name, ref, watch.shape, old_texts, final_state_unknown=False)
        else:
            old_ref = ref_of(old)
            old_uid = old_ref.uid if old_ref.uid != ref.uid else None
            version = old_ref.resource_version
            event = Updated(watch.name, ref, watch.shape, new_texts, old_texts, version, old_uid)
        begin(event)
        names = {Added: "on_add", Updated: "on_update", Deleted: "on_delete"}
        watch.call(names[type(event)], event)

    def _enqueue(self, watch: Watch[Any], rule: Enqueue, state: Object) -> None:
        named: Any = None
        match rule:
            case WorkKey():
                self.queue_add(rule, None)
            case Itself():
                self.queue_add(WorkKey(watch.kind, *key_of(state)), None)
            case ControllerOwner():
                for owner in state["metadata"].get("ownerReferences", []):
                    group = owner["apiVersion"].rpartition("/")[0]
                    if owner.get("controller") and (group, owner["kind"]) == (rule.group, rule.kind):
                        named = owner["name"]
            case NamedByField():
                named = resolve(state, rule.pointer)
            case NamedByLabel():
                named = state["metadata"].get("labels", {}).get(rule.label)
        if isinstance(named, str) and not isinstance(rule, WorkKey | Itself):
            own = "" if rule.cluster_scoped else key_of(state).namespace
            namespace, slash, name = named.rpartition("/")
            self.queue_add(WorkKey(watch.kind, namespace if slash else own, name), None)


def _matches(watch: Watch[Any], state: Object) -> bool:
    metadata = state["metadata"]
    return (
        watch.namespace in (None, metadata.get("namespace", ""))
        and labels_match(watch.label_selector, metadata.get("labels", {}))
        and all(condition_holds(condition, state) for condition in watch.conditions)
    )


def _is_going(old: Object, new: Object) -> bool:
    names = ("uid", "deletionTimestamp")
    return any(old["metadata"].get(name) != new["metadata"].get(name) for name in names)
