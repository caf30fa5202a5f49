// Compares the copies that a source should have with the copies that it has, and writes the difference.

import { AlreadyExistsError, client, events, log, OarlockError, Retry } from "@oarlock/sdk";
import { belongsTo, copyOf, difference } from "./copy.ts";
import type { Copied, Kind } from "./kind.ts";
import { type SourceKey, targetsOf, toText } from "./source.ts";

/** Makes the copies of one source match its annotation. A source that does not exist has no copies. */
export function reconcile(kind: Kind, { namespace, name }: SourceKey): void {
  const key = { namespace, name };
  const source = kind.cached.get(key);
  const targets = source ? targetsOf(source, namespace) : [];
  const copies = copiesOf(kind, key);
  for (const [at, copy] of copies) {
    if (!targets.includes(at)) remove(kind, key, copy);
  }
  if (source === undefined) return;
  for (const target of targets) {
    const copy = copies.get(target);
    if (copy) update(kind, key, source, copy);
    else create(kind, key, source, target);
  }
}

/**
 * Returns the copies of a source, by namespace. An object with another name is not a copy, whatever its
 * annotation says.
 */
function copiesOf(kind: Kind, source: SourceKey): Map<string, Copied> {
  const copies = new Map<string, Copied>();
  for (const copy of kind.cached.byIndex("copies", toText(source))) {
    const { namespace = "", name } = copy.metadata ?? {};
    if (name === source.name && namespace !== source.namespace) copies.set(namespace, copy);
  }
  return copies;
}

function create(kind: Kind, key: SourceKey, source: Copied, namespace: string): void {
  try {
    client.create(kind.resource, copyOf(kind, source, key, namespace));
    log.info("copied", { kind: kind.name, source: toText(key), to: namespace });
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
    // Either the cache does not have mirror's own copy yet, or another object has the name.
    const existing = client.get(kind.resource, { namespace, name: key.name });
    if (!existing) throw new Retry(`the object in ${namespace} was just deleted`);
    if (belongsTo(existing, key)) throw new Retry(`the copy in ${namespace} is not in the cache yet`);
    refuse(kind, key, source, namespace);
  }
}

function update(kind: Kind, key: SourceKey, source: Copied, copy: Copied): void {
  if (copy.type !== source.type) {
    // The API server does not allow to change it. The notification of this delete reconciles the source
    // again, which creates the copy.
    remove(kind, key, copy);
    return;
  }
  const patch = difference(copy, source);
  const { metadata = {} } = copy;
  if (!patch) return;
  client.patch(kind.resource, metadata, patch, { preconditions: metadata });
  log.info("updated", { kind: kind.name, source: toText(key), in: metadata.namespace });
}

function remove(kind: Kind, key: SourceKey, { metadata = {} }: Copied): void {
  client.delete(kind.resource, metadata, { preconditions: metadata });
  log.info("deleted", { kind: kind.name, source: toText(key), in: metadata.namespace });
}

/** Logs, and records as an Event of the source, that an object of another owner has the name of the copy. */
function refuse(kind: Kind, key: SourceKey, source: Copied, namespace: string): void {
  log.warn("not overwritten", { kind: kind.name, source: toText(key), in: namespace });
  const note = `${kind.name} ${namespace}/${key.name} exists and is not a copy of this object`;
  try {
    events.warning(kind.resource, source.metadata ?? {}, "MirrorRefused", note);
  } catch (error) {
    if (!(error instanceof OarlockError)) throw error;
    log.warn("no event recorded", { error: `${error.name}: ${error.message}` });
  }
}
