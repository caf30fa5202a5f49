// Calls to the host, and the errors that they throw.

import type { Error as WitError } from "oarlock:plugin/types@0.1.0";
import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  GoneError,
  InvalidError,
  LimitExceededError,
  NotDeclaredError,
  NotFoundError,
  NotSyncedError,
  SuspendedError,
  ThrottledError,
  TimeoutError,
  UnavailableError,
} from "./errors.js";

const CLASSES = {
  "not-found": NotFoundError,
  "already-exists": AlreadyExistsError,
  conflict: ConflictError,
  forbidden: ForbiddenError,
  invalid: InvalidError,
  unavailable: UnavailableError,
  timeout: TimeoutError,
  gone: GoneError,
  "not-declared": NotDeclaredError,
  "not-synced": NotSyncedError,
  "limit-exceeded": LimitExceededError,
  suspended: SuspendedError,
};

/** Makes a call to the host, and throws its error as an {@link OarlockError}. */
export function calling<R>(call: () => R): R {
  try {
    return call();
  } catch (thrown) {
    throw ofHost(thrown);
  }
}

/** Makes a call to the host; returns `undefined` if there is no such object. */
export function finding<R>(call: () => R): R | undefined {
  try {
    return call();
  } catch (thrown) {
    const error = ofHost(thrown);
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/**
 * Returns the error for what an import has thrown: an `Error` whose `payload` is the case of the
 * contract.
 */
function ofHost(thrown: unknown): unknown {
  const error = (thrown as { payload?: WitError } | undefined)?.payload;
  if (error === undefined) return thrown;
  if (error.tag === "throttled") {
    const { message, retryAfterMs } = error.val;
    return new ThrottledError(message, retryAfterMs ?? undefined);
  }
  const known = CLASSES[error.tag];
  return known ? new known(error.val) : thrown;
}
