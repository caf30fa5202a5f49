// Write Oarlock plugins in TypeScript and JavaScript. README.md has the whole surface on one page.

/// <reference path="../types/plugin.d.ts" preserve="true" />

export * as client from "./client.js";
export * as clock from "./clock.js";
export * as config from "./config.js";
export type { Definition, Request, Schedule } from "./definition.js";
export { type Duration, parseDuration } from "./duration.js";
export * from "./errors.js";
export type { Added, Deleted, EventObject, Synced, Updated } from "./event.js";
export * as events from "./events.js";
export { Retry, RetryAfter, Terminal } from "./failure.js";
export { type IndexSource, type Lister, type ListerOptions, lister } from "./lister.js";
export * as log from "./log.js";
export * as metrics from "./metrics.js";
export { type Exports, plugin, type Requeue, requeueAfter } from "./plugin.js";
export {
  annotation,
  at,
  type Fields,
  type FieldValues,
  label,
  type Pointer,
  pointer,
  type ValueAt,
} from "./pointer.js";
export * as queue from "./queue.js";
export {
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type ObjectRef,
  type OwnerReference,
  type Resource,
  resource,
} from "./resource.js";
export type { ListOptions, Row } from "./rows.js";
export { type Condition, type Enqueue, type Scope, type Watch, type WatchOptions, watch } from "./watch.js";

import "./console.js";
