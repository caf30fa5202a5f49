// What a fake host records of a plugin.

import type { OarlockError } from "../errors.js";
import type { Level } from "../log.js";
import type { WorkKey } from "../queue.js";
import type { ObjectKey } from "../resource.js";

/** A request that changed something, or failed. */
export interface SentRequest {
  readonly verb: "create" | "apply" | "patch" | "replace" | "delete";
  /** Such as `v1/configmaps`, or `apps/v1/deployments/status`. */
  readonly resource: string;
  /** `namespace/name`, or the name of a cluster-scoped object. */
  readonly object: string;
  /** The object or patch. */
  readonly body?: unknown;
  /** The code of its error, such as `conflict`. */
  readonly error?: string;
}

/** An Event. */
export interface RecordedEvent {
  readonly type: "normal" | "warning";
  readonly reason: string;
  /** `Kind namespace/name`. */
  readonly regarding: string;
  readonly note: string;
}

/** A line in the log. */
export interface LogLine {
  readonly level: Level;
  readonly message: string;
  readonly pairs: Readonly<Record<string, string>>;
}

/** A key that the plugin added to its work queue. */
export interface QueuedKey extends WorkKey {
  readonly afterMs?: number;
}

/** Returns `namespace/name`, or the name of a cluster-scoped object. */
export function show({ namespace = "", name = "" }: ObjectKey): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** Returns what an import throws for an error. */
export function thrown(error: OarlockError): Error {
  const { code, message } = error;
  const retryAfterMs = (error as { retryAfterMs?: number }).retryAfterMs;
  const val = code === "throttled" ? { message, retryAfterMs: retryAfterMs ?? null } : message;
  return Object.assign(new Error(message), { payload: { tag: code, val } });
}
