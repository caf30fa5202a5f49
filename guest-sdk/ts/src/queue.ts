// The plugin's work queue. The host calls `reconcile` with its keys.

import type { WorkKey as WitKey } from "oarlock:plugin/work-queue@0.1.0";
import { workQueue as host } from "#host";
import { calling } from "./calling.js";
import { object, text } from "./conversion.js";
import { type Duration, toMs } from "./duration.js";

/** The key of some work, usually the name of an object. */
export interface WorkKey {
  /** The name of the watch or schedule that added the key, or what the plugin chose. */
  readonly kind: string;
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
}

/**
 * Adds a key, now or later. A key that waits already is not added twice; of two delays the one that ends
 * first counts. The delay is at most 24 days.
 */
export function add(key: PartialKey, options: { after?: Duration } = {}): void {
  const added = toWit("the argument key of queue.add", key);
  const { after } = object("the argument options of queue.add", options);
  const delay = after === undefined ? undefined : toMs("the option after of queue.add", after);
  calling(() => (delay === undefined ? host.add(added) : host.addAfter(added, delay)));
}

/** A key whose namespace and name may be left out, for work that is not about one object. */
export type PartialKey = Pick<WorkKey, "kind"> & Partial<WorkKey>;

export function toWit(what: string, key: PartialKey): WitKey {
  const { kind, namespace = "", name = "" } = object(what, key, 'a key such as { kind: "report" }');
  return {
    kind: text(`the kind of ${what}`, kind),
    object: {
      namespace: text(`the namespace of ${what}`, namespace),
      name: text(`the name of ${what}`, name),
    },
  };
}

export function fromWit({ kind, object }: WitKey): WorkKey {
  return { kind, namespace: object.namespace, name: object.name };
}
