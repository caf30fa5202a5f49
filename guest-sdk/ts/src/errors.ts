// The errors of calls to the host: one class for each case of `error` in the contract.

/** Why a call to the host failed. The message names the object or pointer. */
export class OarlockError extends Error {
  override readonly name: string = "OarlockError";

  constructor(
    /** The case of the contract, such as `not-found`. */
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** No such object, field or resource. */
export class NotFoundError extends OarlockError {
  override readonly name = "NotFoundError";
  constructor(message: string) {
    super("not-found", message);
  }
}

/** An object of that name exists already. */
export class AlreadyExistsError extends OarlockError {
  override readonly name = "AlreadyExistsError";
  constructor(message: string) {
    super("already-exists", message);
  }
}

/** The object changed since it was read, or a precondition does not hold. Read it again and retry. */
export class ConflictError extends OarlockError {
  override readonly name = "ConflictError";
  constructor(message: string) {
    super("conflict", message);
  }
}

/** The plugin's ServiceAccount may not do this. */
export class ForbiddenError extends OarlockError {
  override readonly name = "ForbiddenError";
  constructor(message: string) {
    super("forbidden", message);
  }
}

/** The request itself is wrong: a malformed pointer, selector or object. */
export class InvalidError extends OarlockError {
  override readonly name = "InvalidError";
  constructor(message: string) {
    super("invalid", message);
  }
}

/** A rate limit of the API server, or of the host, is exceeded, or a queue of the host is full. */
export class ThrottledError extends OarlockError {
  override readonly name = "ThrottledError";
  constructor(
    message: string,
    /** The delay in milliseconds that the server asked for, if it named one. */
    readonly retryAfterMs?: number,
  ) {
    super("throttled", message);
  }
}

/** The API server cannot be reached. As far as the host knows, nothing was changed. */
export class UnavailableError extends OarlockError {
  override readonly name = "UnavailableError";
  constructor(message: string) {
    super("unavailable", message);
  }
}

/** No answer in time. The outcome is unknown: a write may have happened. */
export class TimeoutError extends OarlockError {
  override readonly name = "TimeoutError";
  constructor(message: string) {
    super("timeout", message);
  }
}

/** The thing asked for no longer exists, such as the state of the cluster that the pages of a list show. */
export class GoneError extends OarlockError {
  override readonly name = "GoneError";
  constructor(message: string) {
    super("gone", message);
  }
}

/** The plugin did not declare this lister or index. */
export class NotDeclaredError extends OarlockError {
  override readonly name = "NotDeclaredError";
  constructor(message: string) {
    super("not-declared", message);
  }
}

/** The cache behind this lister has not synced. */
export class NotSyncedError extends OarlockError {
  override readonly name = "NotSyncedError";
  constructor(message: string) {
    super("not-synced", message);
  }
}

/** A limit of the contract, or of the plugin's file, is exceeded. */
export class LimitExceededError extends OarlockError {
  override readonly name = "LimitExceededError";
  constructor(message: string) {
    super("limit-exceeded", message);
  }
}

/** The operator has suspended this plugin's writes. */
export class SuspendedError extends OarlockError {
  override readonly name = "SuspendedError";
  constructor(message: string) {
    super("suspended", message);
  }
}
