"""Keeps ConfigMaps and Secrets as copies in other namespaces, as `plugins/mirror` does.

Every change of a source, a copy or a namespace leads to the same comparison, with data from the cache: the
copies that a source should have, and the copies that it has. So the plugin keeps no state.

`kinds`: what is copied → `sources`: the copies that a source asks for → `copies`: the writes.
"""

from oarlock import Added, Deleted, Event, ObjectKey, Synced, Updated, WorkKey, work_queue

import copies
import sources
from kinds import KINDS, MIRRORED_FROM, Kind, namespaces
from kinds import plugin as plugin

# The delay after which all sources are reconciled for Namespaces that are delivered as initial adds, of which
# many follow each other.
ALL_SOURCES_AFTER = 1.0

ALL_SOURCES = WorkKey("all-sources")


@plugin.on_start
def start() -> None:
    """Read the configuration, so that a wrong one is reported when the plugin is loaded."""
    sources.read_exclusions()


@namespaces.on_add
def namespace_added(event: Added) -> None:
    """Copy what `*` or a name of a namespace that did not exist asks for."""
    if event.is_in_initial_list:
        # The account may see the namespace only now, after it was notified of the sources.
        work_queue.add(ALL_SOURCES, after=ALL_SOURCES_AFTER)
    else:
        reconcile_all_sources()


@plugin.reconcile(ALL_SOURCES.kind)
def all_sources(key: WorkKey) -> None:
    """Reconcile all sources, for Namespaces that mirror did not know."""
    reconcile_all_sources()


def reconcile_all_sources() -> None:
    """Reconcile the sources of both kinds."""
    for kind in KINDS:
        for source in sources.all_of(kind):
            copies.reconcile(kind, source)


def watch_kind(kind: Kind) -> None:
    """Handle the events of a kind's sources and copies."""

    @kind.sources.on_event
    def source_changed(event: Event) -> None:
        copies.reconcile(kind, ObjectKey(event.namespace, event.name))

    @kind.copies.on_add
    def copy_added(event: Added) -> None:
        reconcile_source_of(event.field(MIRRORED_FROM))

    @kind.copies.on_update
    def copy_updated(event: Updated) -> None:
        # A copy whose annotation a user changed belongs to another source now: both sources are reconciled.
        reconcile_source_of(event.old.field(MIRRORED_FROM))
        reconcile_source_of(event.field(MIRRORED_FROM))

    @kind.copies.on_delete
    def copy_deleted(event: Deleted) -> None:
        reconcile_source_of(event.field(MIRRORED_FROM))

    def reconcile_source_of(annotation: object) -> None:
        source = sources.parse(annotation)
        if source is not None:
            copies.reconcile(kind, source)


def delete_orphans(event: Synced) -> None:
    """Delete the copies of sources that were deleted while the plugin did not run."""
    if event.remaining == 0:
        for kind in KINDS:
            for value in kind.by_source.values():
                source = sources.parse(value)
                if source is not None:
                    copies.reconcile(kind, source)


for kind in KINDS:
    watch_kind(kind)
for watch in plugin.watches.values():
    watch.on_synced(delete_orphans)
