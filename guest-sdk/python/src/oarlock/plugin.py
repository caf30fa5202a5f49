"""A plugin: what it watches, reads, requests and schedules, and the functions that the host calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, TypeVar, overload

from . import _functions
from ._durations import Duration, whole_seconds
from ._values import boolean, instance, instances, text, texts, u32
from .cache import Index, Lister
from .client import Client, Verb
from .conditions import Condition
from .enqueue import Enqueue
from .errors import Terminal
from .names import Resource, WorkKey
from .pointers import F, FieldsOf
from .watch import A_LIST_OF_CONDITIONS, Reconcile, Requeue, Schedule, Watch

_Start = TypeVar("_Start", bound=Callable[[], None])
_Reconcile = TypeVar("_Reconcile", bound=Reconcile)


# Not compared where it is used: type checkers would skip the code of another platform.
_IS_COMPONENT = sys.platform.startswith("wasi")

#: A year, the longest interval of a schedule.
_MAX_EVERY_SECONDS = 31_536_000


class Plugin:
    """A plugin. The module that is built makes one, at its top level, or imports a module that does.

    With `stateless` the plugin can lose everything that it keeps between calls: the host may run several
    instances of it, and a new one does not receive all objects again.
    """

    def __init__(self, name: str, version: str, *, stateless: bool = False) -> None:
        self.name = text("name", name)
        self.version = text("version", version)
        self.stateless = boolean("stateless", stateless)
        self.watches: dict[str, Watch[Any]] = {}
        self.listers: dict[str, Lister] = {}
        self.indices: dict[str, Index] = {}
        self.clients: list[Client] = []
        self.schedules: dict[str, Schedule] = {}
        self._reconcilers: dict[str, Reconcile] = {}
        self._reconcile_others: Reconcile | None = None
        self._starts: list[Callable[[], None]] = []
        if _IS_COMPONENT:
            from . import _exports

            _exports.put_into(_module_that_is_built(), self)

    @overload
    def watch(
        self,
        resource: str | Resource,
        *,
        fields: FieldsOf[F],
        name: str | None = ...,
        namespace: str | None = ...,
        label_selector: str = ...,
        conditions: Sequence[Condition] = ...,
        metadata_only: bool = ...,
        resync: Duration = ...,
        enqueue: Enqueue | None = ...,
        ignore_own_writes: bool = ...,
    ) -> Watch[F]: ...

    @overload
    def watch(
        self,
        resource: str | Resource,
        *,
        name: str | None = ...,
        namespace: str | None = ...,
        label_selector: str = ...,
        conditions: Sequence[Condition] = ...,
        metadata_only: bool = ...,
        resync: Duration = ...,
        enqueue: Enqueue | None = ...,
        ignore_own_writes: bool = ...,
    ) -> Watch[dict[str, Any]]: ...

    def watch(
        self,
        resource: str | Resource,
        *,
        fields: Any = None,
        name: str | None = None,
        namespace: str | None = None,
        label_selector: str = "",
        conditions: Sequence[Condition] = (),
        metadata_only: bool = False,
        resync: Duration = 0,
        enqueue: Enqueue | None = None,
        ignore_own_writes: bool = False,
    ) -> Watch[Any]:
        """Declare a watch: a subscription to the objects of a resource.

        With `fields` the host skips updates that change none of them, and each event carries their values.
        With `enqueue` (or `Watch.reconcile`) a notification adds a key to the work queue, and calls no
        handler. `resync` is whole seconds; 0 means never.
        """
        target = _object_resource(resource)
        name = _free(name, target.plural, self.watches, "watch")
        watch: Watch[Any] = Watch(self._route, name, target, fields)
        watch.namespace = namespace
        watch.label_selector = label_selector
        watch.conditions = instances(
            f"watch {name!r}: conditions", conditions, Condition, A_LIST_OF_CONDITIONS
        )
        watch.metadata_only = metadata_only
        watch.resync_seconds = whole_seconds(f"watch {name!r}: resync", resync)
        watch.enqueue = enqueue
        watch.ignore_own_writes = ignore_own_writes
        watch.check()
        self.watches[name] = watch
        return watch

    def lister(
        self,
        resource: str | Resource,
        *,
        name: str | None = None,
        namespace: str | None = None,
        metadata_only: bool = False,
        wakes: bool = False,
    ) -> Lister:
        """Declare a reader of the cache.

        With `wakes`, a change of what the last run for a key read through it adds that key to the work queue.
        """
        target = _object_resource(resource)
        name = _free(name, target.plural, self.listers, "lister")
        lister = Lister(self._add_index, name, target, namespace, metadata_only, wakes)
        self.listers[name] = lister
        return lister

    def client(
        self, resource: str | Resource, verbs: Sequence[Verb], *, namespace: str | None = None
    ) -> Client:
        """Declare requests to the API server, for which `oarlock rbac` prints a Role.

        The resource may be a subresource: `plugin.client("apps/v1/deployments/scale", ["patch"])`.
        """
        client = Client(Resource.parse(resource), verbs, namespace)
        self.clients.append(client)
        return client

    def schedule(
        self,
        name: str,
        *,
        every: Duration | None = None,
        cron: str | None = None,
        time_zone: str = "",
        at_start: bool = False,
        key: WorkKey | None = None,
    ) -> Schedule:
        """Declare a schedule, which adds a key to the work queue `every` so often, or at the times of `cron`.

        `every` is whole seconds, 1 to 31,536,000 (a year).

        Without a time zone (such as `Europe/Berlin`) the times are in UTC. With `at_start` it also fires when
        the plugin begins to serve. The key's kind is the schedule's name, unless another key is given.
        """
        if (every is None) == (cron is None):
            raise TypeError(f"schedule {name!r}: give one of every= and cron=")
        if text("name", name) in self.schedules:
            raise ValueError(f"there is a schedule of the name {name!r} already")
        every_seconds = None
        if every is not None:
            every_seconds = whole_seconds(f"schedule {name!r}: every", every, 1, _MAX_EVERY_SECONDS)
        schedule = Schedule(self._route, name, every_seconds, cron, time_zone, at_start, key)
        self.schedules[name] = schedule
        return schedule

    def on_start(self, function: _Start) -> _Start:
        """Have the host call a function once in each instance, before all others.

        It may read the configuration and change declarations: `pods.label_selector = config.get("/apps")`.
        An exception in it stops the load of the plugin, and the operator sees its text.
        """
        _functions.check(function, "on_start")
        self._starts.append(function)
        return function

    @overload
    def reconcile(self, function: _Reconcile, /) -> _Reconcile: ...

    @overload
    def reconcile(self, /, *kinds: str) -> Callable[[_Reconcile], _Reconcile]: ...

    def reconcile(self, /, *args: Any) -> Any:
        """Have a function reconcile the keys of some kinds: `@plugin.reconcile("Deployment", "pods")`.

        Without kinds: all keys that no other function reconciles.
        """
        if len(args) == 1 and callable(args[0]):
            self._route(None, args[0])
            return args[0]

        kinds = texts("kinds", args)

        def decorate(function: _Reconcile) -> _Reconcile:
            for kind in kinds or (None,):
                self._route(kind, function)
            return function

        return decorate

    @property
    def handles(self) -> bool:
        """Whether the component exports `handler`."""
        return any(watch.has_handlers for watch in self.watches.values())

    @property
    def reconciles(self) -> bool:
        """Whether the component exports `reconciler`."""
        return bool(self._reconcilers) or self._reconcile_others is not None

    def start(self) -> None:
        """Call the functions with `on_start`, and check the declarations, which they may have changed."""
        for function in self._starts:
            function()
        self.check()

    def check(self) -> None:
        """Raise an error for a part of a declaration that the host cannot take."""
        text("name", self.name)
        text("version", self.version)
        boolean("stateless", self.stateless)
        named = (self.watches, self.listers, self.indices, self.schedules)
        for declared in (*(it for by_name in named for it in by_name.values()), *self.clients):
            declared.check()

    def run_reconcile(self, key: WorkKey) -> Requeue | None:
        """Call the function for a key."""
        function = self._reconcilers.get(key.kind, self._reconcile_others)
        if function is None:
            kinds = ", ".join(sorted(self._reconcilers))
            raise Terminal(
                f"no function reconciles keys of the kind {key.kind!r}, only {kinds}: "
                f'write @plugin.reconcile("{key.kind}"), or @plugin.reconcile for all others'
            )
        outcome = function(key)
        if outcome is None:
            return None
        what = f"the outcome of {_name(function)}"
        requeue = instance(what, outcome, Requeue, "None, or Requeue(after=60)")
        requeue.after_ms = u32(f"{what}: after_ms", requeue.after_ms)
        return requeue

    def _route(self, kind: str | None, function: Reconcile) -> None:
        _functions.check(function, "reconcile", "key")
        if kind is None:
            if self._reconcile_others is not None:
                raise ValueError(f"{_name(self._reconcile_others)} reconciles all other keys already")
            self._reconcile_others = function
        elif kind in self._reconcilers:
            raise ValueError(f"{_name(self._reconcilers[kind])} reconciles keys of the kind {kind!r} already")
        else:
            self._reconcilers[kind] = function

    def _add_index(self, index: Index) -> None:
        if index.name in self.indices:
            raise ValueError(f"there is an index of the name {index.name!r} already")
        self.indices[index.name] = index


def _module_that_is_built() -> dict[str, Any]:
    """Return the globals of the module where componentize-py looks for the exports: the one it imports."""
    frame: FrameType | None = sys._getframe(2)
    module: dict[str, Any] = {}
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("importlib."):
            module = frame.f_globals
        frame = frame.f_back
    return module


def _object_resource(resource: str | Resource) -> Resource:
    target = Resource.parse(resource)
    if target.subresource:
        raise ValueError(f"{target} is a subresource, which has no objects of its own to watch or list")
    return target


def _free(name: str | None, default: str, taken: dict[str, Any], what: str) -> str:
    chosen = default if name is None else text("name", name)
    if chosen in taken:
        raise ValueError(f"there is a {what} of the name {chosen!r} already: give this one another name=")
    return chosen


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
