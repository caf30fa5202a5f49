"""The exports of a component: what componentize-py looks for in the module that it builds.

componentize-py imports the module when it builds the component, makes one `Metadata`, `Handler` and
`Reconciler`, and stores the state of the interpreter. No host is there until the first call of an instance.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.metadata import Description
from wit_world.imports.types import Failure_Retry, Failure_RetryAfter, Failure_Terminal, RetryInfo

from . import _host
from ._describe import describe
from ._failures import CallFailure, failure_of, keep_sources, last_line, traceback_of
from ._wit import WitHost, ref_of
from .event import Added, Deleted, Synced, Updated, begin
from .log import connect_logging
from .names import WorkKey

if TYPE_CHECKING:
    from wit_world.exports import handler, reconciler
    from wit_world.imports import work_queue

    from .plugin import Plugin

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

    @contextmanager
    def call(self) -> Iterator[None]:
        """Make a call, and return an exception of it as a failure."""
        try:
            if not self.has_started:
                self.connect()
                self.plugin.start()
                self.has_started = True
            yield
        except Exception as error:
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
        except Exception as error:
            _host.current().log("error", traceback_of(error), {})
            raise Err(last_line(error)) from error


class _Handler:
    def __init__(self, instance: _Instance) -> None:
        self.instance = instance

    def on_add(self, event: handler.Added) -> None:
        with self.instance.call():
            watch = self.instance.plugin.watches[event.subscription]
            ref = ref_of(event.object)
            added: Added[Any] = Added(watch.name, ref, watch.shape, event.fields, event.is_in_initial_list)
            begin(added)
            watch.call("on_add", added)

    def on_update(self, event: handler.Updated) -> None:
        with self.instance.call():
            watch = self.instance.plugin.watches[event.subscription]
            updated: Updated[Any] = Updated(
                watch.name,
                ref_of(event.object),
                watch.shape,
                event.fields,
                event.old_fields,
                event.old_resource_version,
                event.old_uid,
            )
            begin(updated)
            watch.call("on_update", updated)

    def on_delete(self, event: handler.Deleted) -> None:
        with self.instance.call():
            watch = self.instance.plugin.watches[event.subscription]
            ref = ref_of(event.object)
            deleted: Deleted[Any] = Deleted(
                watch.name, ref, watch.shape, event.fields, event.final_state_unknown
            )
            begin(deleted)
            watch.call("on_delete", deleted)

    def on_synced(self, event: handler.Synced) -> None:
        with self.instance.call():
            watch = self.instance.plugin.watches[event.subscription]
            watch.call("on_synced", Synced(watch.name, event.remaining))


class _Reconciler:
    def __init__(self, instance: _Instance) -> None:
        self.instance = instance

    def reconcile(self, key: work_queue.WorkKey) -> reconciler.Outcome:
        with self.instance.call():
            requeue = self.instance.plugin.run_reconcile(
                WorkKey(key.kind, key.object.namespace, key.object.name)
            )
            return Outcome_Done() if requeue is None else Outcome_RequeueAfter(requeue.after_ms)
        raise AssertionError


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
