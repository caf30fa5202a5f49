// Keeps ConfigMaps and Secrets as copies in other namespaces.
//
// mirror copies an object with the annotation `oarlock.dev/mirror-to: "team-a,team-b"` (or `*`) into
// those namespaces, as long as the object and its annotation exist. Every change of a source, a copy or a
// namespace leads to the same comparison, with data from the cache: the copies that a source should have,
// and the copies that it has (`reconcile.ts`). So the plugin keeps no state, and reaches the correct
// state after any number of missed events.

import { type Duration, type EventObject, plugin, queue, type Synced, type Watch, watch } from "@oarlock/sdk";
import { type Copied, KINDS, type Kind, MIRROR_TO, MIRRORED_FROM } from "./kind.ts";
import { notified } from "./notified.ts";
import { reconcile } from "./reconcile.ts";
import { allSources, allSourcesOfCopies, exclusions, fromText, namespaces } from "./source.ts";

export const { metadata, handler, reconciler } = plugin(() => {
  // An error in the configuration stops the load.
  exclusions();
  return {
    name: "mirror-ts",
    version: "0.1.0",
    stateless: true,
    watches: {
      ...Object.fromEntries(KINDS.flatMap((kind) => watchesOf(kind))),
      namespaces: watch("v1/namespaces", {
        onAdd({ watch, object, isInitial }) {
          // The account may see Namespaces only now, after it was notified of the sources. Many initial adds
          // follow each other.
          if (isInitial) queue.add({ kind: "all-sources" }, { after: "1s" });
          else reconcileAll();
          notified("add", watch, object, { initial: isInitial });
        },
        onUpdate({ watch, object, old }) {
          notified("update", watch, object, { "old-resource-version": old.object.resourceVersion });
        },
        onDelete({ watch, object, isStateUnknown }) {
          notified("delete", watch, object, { unknown: isStateUnknown });
        },
        onSynced,
      }),
    },
    listers: [...KINDS.map(({ cached }) => cached), namespaces],
    requests: KINDS.map(({ resource }) => ({ to: resource, verbs: ["get", "create", "patch", "delete"] })),

    // Its only key stands for all sources.
    reconcile: reconcileAll,
  };
});

/** Returns the watches of a kind: of its sources, and of its copies. */
function watchesOf(kind: Kind): [string, Watch][] {
  const ofSource = (source: EventObject<Copied>) => reconcile(kind, source);
  const ofCopy = (copy: EventObject<Copied>) => {
    const source = fromText(copy.field(MIRRORED_FROM));
    if (source) reconcile(kind, source);
  };
  return [
    // An object that prevented a copy may be gone: sources are reconciled without an event too.
    [kind.sources, watchOf(kind, MIRROR_TO, "5m", ofSource)],
    [kind.copies, watchOf(kind, MIRRORED_FROM, 0, ofCopy)],
  ];
}

/** Returns a watch of the objects with an annotation. */
function watchOf(
  kind: Kind,
  annotation: string,
  resync: Duration,
  changed: (object: EventObject<Copied>) => void,
): Watch {
  return watch(kind.resource, {
    conditions: [{ at: annotation, exists: true }],
    resync,
    onAdd({ watch, object, isInitial }) {
      changed(object);
      notified("add", watch, object, { initial: isInitial });
    },
    onUpdate({ watch, object, old }) {
      // A copy whose annotation a user changed belongs to another source now: both are reconciled.
      changed(old.object);
      changed(object);
      notified("update", watch, object, { "old-resource-version": old.object.resourceVersion });
    },
    onDelete({ watch, object, isStateUnknown }) {
      changed(object);
      notified("delete", watch, object, { unknown: isStateUnknown });
    },
    onSynced,
  });
}

/** Deletes the copies of sources that were deleted while the plugin did not run. */
function onSynced({ watch, remaining }: Synced): void {
  if (remaining === 0) {
    for (const kind of KINDS) {
      for (const source of allSourcesOfCopies(kind)) reconcile(kind, source);
    }
  }
  notified("synced", watch, undefined, { remaining });
}

/** Reconciles all sources, for Namespaces that mirror did not know. */
function reconcileAll(): void {
  for (const kind of KINDS) {
    for (const source of allSources(kind)) reconcile(kind, source);
  }
}
