"""The exports of a component: what componentize-py looks for in the module that it builds.

componentize-py imports the module when it builds the component, makes one `Metadata`, `Handler` and
`Reconciler`, and stores the state of the interpreter. No host is there until the first call of an instance.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.metadata import Description
from wit_world.imports.types import Failure_Retry, Failure_RetryAfter, Failure_Terminal, RetryInfo

from . import _host, log
from ._describe import describe
from ._failures import CallFailure, failure_of, keep_sources, text_of, traceback_of
from ._wit import WitHost
from .event import Added, Deleted, Synced, Updated, begin
from .log import connect_logging
from .names import WorkKey

if TYPE_CHECKING:
    from wit_world.exports import handler, reconciler
    from wit_world.imports import work_queue

    from .plugin import Plugin

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

# The modules of a world that has these exports. An instance has no files to import them from.
HAS_HANDLER = hasattr(exports, "Handler")
HAS_RECONCILER = hasattr(exports, "Reconciler")
if HAS_RECONCILER:
    from wit_world.exports.reconciler import Outcome_Done, Outcome_RequeueAfter


def put_into(module: dict[str, Any], plugin: Plugin) -> None:
    """Put the exports of a plugin into the module that makes it."""
    if "Metadata" in module:
        raise RuntimeError("the module that is built makes two plugins, and a component has one")
    instance = _Instance(plugin)
    module["Metadata"] = lambda: _Metadata(instance)
    module["Handler"] = lambda: _Handler(instance)
    module["Reconciler"] = lambda: _Reconciler(instance)


class _Instance:
    """The plugin in one instance of the component."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.has_started = False

    def connect(self) -> None:
        """Make the host known, at the first call."""
        _host.replace(WitHost())
        connect_logging()
        # The state of the build would be that of every instance.
        random.seed()

    def call(self, handle: Callable[[Plugin, _Argument], _Result], argument: _Argument) -> _Result:
        """Make a call, and raise an exception of it as a failure."""
        try:
            if not self.has_started:
                self.connect()
                self.plugin.start()
                self.has_started = True
            return handle(self.plugin, argument)
        # Of sys.exit() too: an exception that is raised further ends the instance with a trap.
        except BaseException as error:
            raise Err(_failure(failure_of(error))) from error
        finally:
            begin(None)


class _Metadata:
    def __init__(self, instance: _Instance) -> None:
        self.instance = instance
        _check_world(instance.plugin)
        keep_sources()

    def describe(self) -> Description:
        try:
            self.instance.connect()
            self.instance.plugin.start()
            self.instance.has_started = True
            return describe(self.instance.plugin)
        except BaseException as error:
            log.error(traceback_of(error))
            raise Err(text_of(error)) from error


class _Handler:
    def __init__(self, instance: _Instance) -> None:
        self.instance = instance

    def on_add(self, event: handler.Added) -> None:
        self.instance.call(_on_add, event)

    def on_update(self, event: handler.Updated) -> None:
        self.instance.call(_on_update, event)

    def on_delete(self, event: handler.Deleted) -> None:
        self.instance.call(_on_delete, event)

    def on_synced(self, event: handler.Synced) -> None:
        self.instance.call(_on_synced, event)


class _Reconciler:
    def __init__(self, instance: _Instance) -> None:
        self.instance = instance

    def reconcile(self, key: work_queue.WorkKey) -> reconciler.Outcome:
        return self.instance.call(_reconcile, key)


def _on_add(plugin: Plugin, event: handler.Added) -> None:
    watch = plugin.watches[event.subscription]
    initial = event.is_in_initial_list
    added: Added[Any] = Added(watch.name, event.object, watch.shape, event.fields, initial)
    begin(added)
    watch.call("on_add", added)


def _on_update(plugin: Plugin, event: handler.Updated) -> None:
    watch = plugin.watches[event.subscription]
    updated: Updated[Any] = Updated(
        watch.name,
        event.object,
        watch.shape,
        event.fields,
        event.old_fields,
        event.old_resource_version,
        event.old_uid,
    )
    begin(updated)
    watch.call("on_update", updated)


def _on_delete(plugin: Plugin, event: handler.Deleted) -> None:
    watch = plugin.watches[event.subscription]
    unknown = event.final_state_unknown
    deleted: Deleted[Any] = Deleted(watch.name, event.object, watch.shape, event.fields, unknown)
    begin(deleted)
    watch.call("on_delete", deleted)


def _on_synced(plugin: Plugin, event: handler.Synced) -> None:
    watch = plugin.watches[event.subscription]
    watch.call("on_synced", Synced(watch.name, event.remaining))


def _reconcile(plugin: Plugin, key: work_queue.WorkKey) -> reconciler.Outcome:
    requeue = plugin.run_reconcile(WorkKey(key.kind, key.object.namespace, key.object.name))
    return Outcome_Done() if requeue is None else Outcome_RequeueAfter(requeue.after_ms)


def _failure(failure: CallFailure) -> Failure_Retry | Failure_RetryAfter | Failure_Terminal:
    if failure.kind == "terminal":
        return Failure_Terminal(failure.message)
    if failure.after_ms is not None:
        return Failure_RetryAfter(RetryInfo(failure.message, failure.after_ms))
    return Failure_Retry(failure.message)


def _check_world(plugin: Plugin) -> None:
    """Compare what the plugin has with what the world exports."""
    needs = {"handler": plugin.handles, "reconciler": plugin.reconciles}
    has = {"handler": HAS_HANDLER, "reconciler": HAS_RECONCILER}
    if any(has[name] < needs[name] for name in needs):
        world = {(True, False): "handler-plugin", (False, True): "reconciler-plugin"}.get(
            (needs["handler"], needs["reconciler"]), "plugin"
        )
        missing = " and ".join(name for name in needs if has[name] < needs[name])
        raise RuntimeError(
            f'the world exports no {missing}, and the plugin has functions for it: write world = "{world}" '
            "into oarlock.toml"
        )
