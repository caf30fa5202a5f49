"""The functions that a plugin calls, on a cluster in memory."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from .._host import Preconditions, Projection, RawPage, RawRow, Written
from .._values import json_text, mapping
from ..cache import Index, Lister
from ..errors import LimitExceeded, NotDeclared, NotFound, OarlockError
from ..names import ObjectKey, ObjectRef, Resource, WorkKey, key_of, ref_of
from ..plugin import Plugin
from .cluster import Cluster, Object
from .selectors import labels_match, resolve, scalars, text_at

# The maximum length of the rows of a page.
LONGEST_PAGE = 4 << 20

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Write:
    """A request of the plugin that changes something."""

    verb: str
    resource: str
    namespace: str
    name: str
    body: Any = None


@dataclass(frozen=True)
class Emitted:
    """A Kubernetes Event that the plugin recorded."""

    type: str
    reason: str
    note: str
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Logged:
    """A line that the plugin logged."""

    level: str
    message: str
    pairs: Mapping[str, str] = field(default_factory=dict)


class Imports(ABC):
    """What a plugin calls. The host of a test delivers what changes."""

    def __init__(self, plugin: Plugin, config: Mapping[str, Any] | None) -> None:
        self.plugin = plugin
        #: What the plugin wrote, in order.
        self.writes: list[Write] = []
        #: The Kubernetes Events that it recorded.
        self.events: list[Emitted] = []
        #: The lines that it logged.
        self.logs: list[Logged] = []
        #: Its metrics: the sums of counters and the values of gauges, by name and labels.
        self.metrics: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        #: The keys that wait, with the times at which they are due.
        self.queue: dict[WorkKey, datetime] = {}
        #: The time.
        self.time = START
        self._config = _parse(json_text("config", mapping("config", {} if config is None else config)))
        self._cluster = Cluster(self._changed)
        self._event: tuple[Object | None, Object | None] = (None, None)
        self._demands_version = False
        self._reading: WorkKey | None = None
        self._reads: dict[WorkKey, set[tuple[Resource, ObjectKey | None]]] = {}

    @abstractmethod
    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        """Receive a change of the cluster."""

    def event_field(self, old: bool, pointer: str) -> str | None:
        """Return a field of the object of the notification."""
        return text_at(self._state(old), pointer)

    def event_fields(self, old: bool, pointers: Sequence[str]) -> Sequence[str | None]:
        """Return several fields."""
        return texts_at(pointers, self._state(old))

    def event_json(self, old: bool) -> str:
        """Return the whole object."""
        return json.dumps(self._state(old))

    def _state(self, old: bool) -> Object:
        state = self._event[0 if old else 1]
        if state is None:
            raise NotFound("this notification has no such state")
        return state

    def cache_get(self, lister: str, key: ObjectKey, projection: Projection) -> RawRow:
        """Return one object of a lister."""
        declared = self._lister(lister)
        self._read(lister, key)
        found = self._cluster.get(declared.resource, key)
        if declared.namespace not in (None, key.namespace):
            raise NotFound(f"lister {lister!r} reads namespace {declared.namespace} only")
        return _row(found, projection)

    def cache_list(
        self, lister: str, namespace: str | None, label_selector: str, projection: Projection, token: str
    ) -> RawPage:
        """Return the objects of a lister, in one page."""
        self._read(lister, None)
        found = self._objects(lister, namespace)
        matching = [it for it in found if labels_match(label_selector, it["metadata"].get("labels", {}))]
        return RawPage([_row(it, projection) for it in matching], "")

    def cache_by_index(
        self, index: str, value: str, namespace: str | None, projection: Projection, token: str
    ) -> RawPage:
        """Return the objects with a value in an index, in one page."""
        rows = [
            _row(it, projection)
            for it in self._objects(self._index(index).lister.name, namespace)
            if value in self._values(index, it)
        ]
        return RawPage(rows, "")

    def cache_index_values(self, index: str) -> Sequence[str]:
        """Return the values of an index."""
        found = self._objects(self._index(index).lister.name, None)
        return sorted({value for it in found for value in self._values(index, it)})

    def cache_has_synced(self, lister: str) -> bool:
        """Return that the cache has all objects."""
        self._lister(lister)
        return True

    def cache_wait_until_seen(self, lister: str, resource_version: str, timeout_ms: int) -> None:
        """Return at once: the cache has all objects."""
        self._lister(lister)

    def _lister(self, name: str) -> Lister:
        if name not in self.plugin.listers:
            raise NotDeclared(f"lister {name!r}")
        return self.plugin.listers[name]

    def _index(self, name: str) -> Index:
        if name not in self.plugin.indices:
            raise NotDeclared(f"index {name!r}")
        self._read(self.plugin.indices[name].lister.name, None)
        return self.plugin.indices[name]

    def _read(self, lister: str, key: ObjectKey | None) -> None:
        declared = self._lister(lister)
        if declared.wakes and self._reading is not None:
            self._reads[self._reading].add((declared.resource, key))

    def _objects(self, lister: str, namespace: str | None) -> list[Object]:
        declared = self._lister(lister)
        chosen = {namespace, declared.namespace} - {None}
        found = self._cluster.all(declared.resource)
        return [it for it in found if chosen <= {key_of(it).namespace}]

    def _values(self, index: str, it: Object) -> list[str]:
        declared = self.plugin.indices[index]
        if declared.label is not None:
            return [*filter(None, [it["metadata"].get("labels", {}).get(declared.label)])]
        if declared.pointer is not None:
            return [*scalars(it, declared.pointer)]
        return [owner["uid"] for owner in it["metadata"].get("ownerReferences", [])]

    def client_get(self, resource: Resource, key: ObjectKey) -> str:
        """Return an object."""
        found = self._cluster.get(resource, key)
        if resource.subresource == "scale":
            found = {"metadata": found["metadata"], "spec": {"replicas": found["spec"]["replicas"]}}
        return json.dumps(found)

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
        """Return a page of objects. As in the host, its rows have at most 4 MiB."""
        found = [it for it in self._cluster.all(resource) if namespace in (None, key_of(it).namespace)]
        matching = [it for it in found if labels_match(label_selector, it["metadata"].get("labels", {}))]
        for requirement in filter(None, field_selector.split(",")):
            path, differs, value = requirement.replace("==", "=").replace("!=", "=!").partition("=")
            wanted, pointer = value.removeprefix("!"), "/" + path.replace(".", "/")
            is_same = not (differs and value.startswith("!"))
            matching = [it for it in matching if (str(resolve(it, pointer)) == wanted) == is_same]
        rows: list[RawRow] = []
        length, last = 0, ""
        for found_object in matching:
            at = "\0".join(key_of(found_object))
            if at <= token:
                continue
            if len(rows) == limit:
                return RawPage(rows, last)
            row = _row(found_object, projection)
            length += sum(len(text.encode()) for text in (*row.fields, row.json) if text is not None)
            if length > LONGEST_PAGE:
                raise LimitExceeded(f"the rows have more than {LONGEST_PAGE} bytes; ask for fewer rows")
            rows.append(row)
            last = at
        return RawPage(rows, "")

    def client_create(self, resource: Resource, namespace: str, json: str) -> Written:
        """Create an object."""
        body = _parse(json)
        self._demands_version = True
        created = self._cluster.create(resource, namespace, body)
        return self._wrote("create", resource, key_of(created), body, created)

    def client_apply(
        self, resource: Resource, key: ObjectKey, json: str, force: bool, preconditions: Preconditions
    ) -> Written:
        """Merge the fields of an object. The fake host knows no field managers."""
        body = _parse(json)
        self._demands_version = preconditions.resource_version is not None
        after = self._cluster.apply(resource, key, body, preconditions)
        return self._wrote("apply", resource, key, body, after)

    def client_patch(
        self, resource: Resource, key: ObjectKey, kind: str, body: str, preconditions: Preconditions
    ) -> Written:
        """Change an object."""
        patch = _parse(body)
        if kind == "strategic":
            raise OarlockError("the fake host knows no strategic merge patch: use `oarlock plugin test`")
        change = self._cluster.merge if kind == "merge" else self._cluster.edit
        self._demands_version = preconditions.resource_version is not None
        after = change(resource, key, patch, preconditions)
        return self._wrote("patch", resource, key, patch, after)

    def client_replace(self, resource: Resource, key: ObjectKey, json: str) -> Written:
        """Replace an object."""
        body = _parse(json)
        self._demands_version = True
        after = self._cluster.replace(resource, key, body)
        return self._wrote("replace", resource, key, body, after)

    def client_delete(
        self,
        resource: Resource,
        key: ObjectKey,
        propagation: str,
        grace_period_seconds: int | None,
        preconditions: Preconditions,
    ) -> None:
        """Delete an object."""
        self._cluster.delete(resource, key, preconditions)
        self.writes.append(Write("delete", str(resource), *key))

    def _wrote(self, verb: str, resource: Resource, key: ObjectKey, body: Any, after: Object) -> Written:
        self.writes.append(Write(verb, str(resource), *key, body))
        ref = ref_of(after)
        return Written(ref.name, ref.uid, ref.resource_version)

    def queue_add(self, key: WorkKey, delay_ms: int | None) -> None:
        """Add a key to the work queue."""
        due = self.time + timedelta(milliseconds=delay_ms or 0)
        self.queue[key] = min(due, self.queue.get(key, due))

    def emit(
        self, resource: Resource, regarding: ObjectRef, kind: str, warning: bool, reason: str, note: str
    ) -> None:
        """Note a Kubernetes Event."""
        type_ = "Warning" if warning else "Normal"
        self.events.append(Emitted(type_, reason, note, kind, regarding.namespace, regarding.name))

    def log(self, level: str, message: str, pairs: Mapping[str, str]) -> None:
        """Note a line."""
        self.logs.append(Logged(level, message, dict(pairs)))

    def log_enabled(self, level: str) -> bool:
        """Return that every level is written."""
        return True

    def now(self) -> tuple[int, int]:
        """Return the time of the test."""
        passed = self.time - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return passed.days * 86_400 + passed.seconds, passed.microseconds * 1000

    def elapsed_ms(self) -> float:
        """Return the time since the start of the test."""
        return (self.time - START).total_seconds() * 1000

    def config_get(self, pointer: str) -> str | None:
        """Return a value of the configuration."""
        return text_at(self._config, pointer)

    def config_json(self) -> str:
        """Return the configuration."""
        return json.dumps(self._config)

    def counter_add(self, name: str, by: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        series = (name, tuple(sorted(labels.items())))
        self.metrics[series] = self.metrics.get(series, 0.0) + by

    def gauge_set(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Set a gauge."""
        self.metrics[name, tuple(sorted(labels.items()))] = value


def texts_at(pointers: Sequence[str], state: Object) -> list[str | None]:
    """Return the JSON texts at some pointers."""
    return [text_at(state, pointer) for pointer in pointers]


def _row(found: Object, projection: Projection) -> RawRow:
    if projection is None:
        return RawRow(ref_of(found), [], json.dumps(found))
    return RawRow(ref_of(found), texts_at(projection, found), None)


def _parse(text: str) -> Any:
    return json.loads(text)
