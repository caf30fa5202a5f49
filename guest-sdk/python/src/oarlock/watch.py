"""What calls a plugin: watches with their handlers, and schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, get_args

from . import _functions
from ._durations import Duration, milliseconds
from ._values import boolean, instance, instances, optional_text, optional_u32, text, u32
from .conditions import Condition
from .enqueue import ControllerOwner, Enqueue, Itself
from .event import Added, Deleted, Event, Synced, Updated
from .names import Resource, WorkKey, checked_work_key
from .pointers import F, Shape


class Requeue:
    """The outcome of a reconcile that wants to be called again: `return Requeue(after=60)`.

    After at most 49 days the host calls, also for a longer wait.
    """

    __slots__ = ("after_ms",)

    def __init__(self, *, after: Duration) -> None:
        #: The wait in milliseconds.
        self.after_ms = milliseconds(after)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Requeue) and self.after_ms == other.after_ms

    def __hash__(self) -> int:
        return hash(self.after_ms)

    def __repr__(self) -> str:
        return f"Requeue(after={self.after_ms / 1000})"


Reconcile = Callable[[WorkKey], None] | Callable[[WorkKey], Requeue] | Callable[[WorkKey], Requeue | None]
"""A function that makes the actual state match the one that the object of the key asks for."""

A_LIST_OF_CONDITIONS = "a list of conditions, such as [exists('/spec/paused')]"

_Route = Callable[[str | None, Reconcile], None]
_Reconcile = TypeVar("_Reconcile", bound=Reconcile)
_Handler = TypeVar("_Handler", bound=Callable[[Any], None])


class Watch(Generic[F]):
    """A subscription to the objects of a resource; see `Plugin.watch`."""

    def __init__(
        self, route: _Route, name: str, resource: Resource, fields: type[Any] | Sequence[str] | None
    ) -> None:
        self.name = name
        self.resource = resource
        self.shape = None if fields is None else Shape(fields)
        self.namespace: str | None = None
        self.label_selector = ""
        self.conditions: list[Condition] = []
        self.metadata_only = False
        self.resync_seconds = 0
        self.enqueue: Enqueue | None = None
        self.ignore_own_writes = False
        self._route = route
        self._handlers: dict[str, Callable[[Any], None]] = {}

    def check(self) -> None:
        """Raise an error for a part of the declaration that the host cannot take."""
        what = f"watch {text('name', self.name)!r}"
        instance(f"{what}: resource", self.resource, Resource, "a Resource")
        optional_text(f"{what}: namespace", self.namespace)
        text(f"{what}: label_selector", self.label_selector)
        # Stored, as the start may have set another iterable, which can be read once only.
        self.conditions = instances(f"{what}: conditions", self.conditions, Condition, A_LIST_OF_CONDITIONS)
        boolean(f"{what}: metadata_only", self.metadata_only)
        self.resync_seconds = u32(f"{what}: resync_seconds", self.resync_seconds)
        if self.enqueue is not None:
            expected = "a rule, such as Itself(), or a WorkKey"
            instance(f"{what}: enqueue", self.enqueue, get_args(Enqueue), expected)
        if isinstance(self.enqueue, WorkKey):
            checked_work_key(f"{what}: enqueue", self.enqueue)
        boolean(f"{what}: ignore_own_writes", self.ignore_own_writes)

    def on_add(self, function: Callable[[Added[F]], None]) -> Callable[[Added[F]], None]:
        """Handle objects that exist, were created, or began to match."""
        return self._set("on_add", function)

    def on_update(self, function: Callable[[Updated[F]], None]) -> Callable[[Updated[F]], None]:
        """Handle changes of objects, and resyncs."""
        return self._set("on_update", function)

    def on_delete(self, function: Callable[[Deleted[F]], None]) -> Callable[[Deleted[F]], None]:
        """Handle objects that were deleted, or ceased to match."""
        return self._set("on_delete", function)

    def on_change(
        self, function: Callable[[Added[F] | Updated[F]], None]
    ) -> Callable[[Added[F] | Updated[F]], None]:
        """Handle adds and updates."""
        self._set("on_add", function)
        return self._set("on_update", function)

    def on_event(self, function: Callable[[Event[F]], None]) -> Callable[[Event[F]], None]:
        """Handle adds, updates and deletes."""
        for handler in ("on_add", "on_update"):
            self._set(handler, function)
        return self._set("on_delete", function)

    def on_synced(self, function: Callable[[Synced], None]) -> Callable[[Synced], None]:
        """Handle the end of the initial adds."""
        return self._set("on_synced", function)

    def reconcile(self, function: _Reconcile) -> _Reconcile:
        """Have notifications add keys to the work queue, and a function reconcile them.

        The key is the object itself, unless the watch has another `enqueue`.
        """
        self._check("reconcile")
        if self.enqueue is None:
            self.enqueue = Itself()
        self._route(self.kind, function)
        return function

    @property
    def kind(self) -> str:
        """The kind of the keys that this watch adds."""
        if isinstance(self.enqueue, ControllerOwner | WorkKey):
            return self.enqueue.kind
        return self.name

    @property
    def has_handlers(self) -> bool:
        """Whether a function handles its events."""
        return bool(self._handlers)

    def call(self, handler: str, event: Any) -> None:
        """Call the handler for an event, if there is one."""
        function = self._handlers.get(handler)
        if function is not None:
            function(event)

    def _set(self, handler: str, function: _Handler) -> _Handler:
        self._check(handler)
        _functions.check(function, handler, "event")
        before = self._handlers.setdefault(handler, function)
        if before is not function:
            raise ValueError(
                f"watch {self.name!r}: {getattr(before, '__qualname__', before)} is its {handler} already"
            )
        return function

    def _check(self, what: str) -> None:
        is_other_kind = bool(self._handlers) if what == "reconcile" else self.enqueue is not None
        if is_other_kind:
            raise ValueError(
                f"watch {self.name!r} either adds keys to the work queue or calls handlers, not both: "
                "declare another watch for the other"
            )


class Schedule:
    """A trigger that adds a key to the work queue; see `Plugin.schedule`."""

    def __init__(
        self,
        route: _Route,
        name: str,
        every_seconds: int | None,
        cron: str | None,
        time_zone: str,
        at_start: bool,
        key: WorkKey | None,
    ) -> None:
        self.name = name
        self.every_seconds = every_seconds
        self.cron = cron
        self.time_zone = time_zone
        self.at_start = at_start
        self.key = key
        self._route = route
        self.check()

    def check(self) -> None:
        """Raise an error for a part of the declaration that the host cannot take."""
        what = f"schedule {text('name', self.name)!r}"
        self.every_seconds = optional_u32(f"{what}: every_seconds", self.every_seconds)
        optional_text(f"{what}: cron", self.cron)
        text(f"{what}: time_zone", self.time_zone)
        boolean(f"{what}: at_start", self.at_start)
        if self.key is not None:
            checked_work_key(f"{what}: key", self.key)

    def reconcile(self, function: _Reconcile) -> _Reconcile:
        """Have a function reconcile the key of this schedule."""
        self._route(self.name if self.key is None else self.key.kind, function)
        return function
