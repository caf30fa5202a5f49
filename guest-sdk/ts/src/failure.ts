// What a handler throws to say how the host goes on.

import type { Failure as WitFailure } from "oarlock:plugin/types@0.1.0";
import { anyText, u32 } from "./conversion.js";
import { type Duration, toMs } from "./duration.js";
import {
  InvalidError,
  LimitExceededError,
  NotDeclaredError,
  OarlockError,
  ThrottledError,
} from "./errors.js";

/** Thrown by a handler: the host calls again, with back-off. */
export class Retry extends Error {
  override readonly name: string = "Retry";
}

/** Thrown by a handler: the host calls again, with back-off, but not before this time (an hour at most). */
export class RetryAfter extends Retry {
  override readonly name = "RetryAfter";
  /** The least time until the next call, in milliseconds. */
  readonly afterMs: number;

  constructor(after: Duration, message: string, options?: ErrorOptions) {
    super(message, options);
    this.afterMs = Math.min(toMs("the argument after of RetryAfter", after), 3_600_000);
  }
}

/** Thrown by a handler: the host does not call again before the object or key changes. It parks it. */
export class Terminal extends Error {
  override readonly name = "Terminal";
}

/** Errors that a repeated call would meet again. */
const LASTING = [InvalidError, LimitExceededError, NotDeclaredError];

/** The message of an exception about something that browsers and Node.js have, and components lack. */
const ABSENT =
  /^'?(fetch|require|setInterval|setTimeout|TextDecoder|TextEncoder|URL|WebSocket|XMLHttpRequest)'? is not defined$/;

/** What the exports throw, with the exception behind it, for tests. */
export const causes = new WeakMap<WitFailure, unknown>();

/** Returns the failure of the contract for what a handler has thrown. */
export function failureOf(thrown: unknown): WitFailure {
  const failure = converted(thrown);
  causes.set(failure, thrown);
  return failure;
}

function converted(thrown: unknown): WitFailure {
  try {
    return classify(thrown);
  } catch (error) {
    return { tag: "retry", val: withStack(error) };
  }
}

function classify(thrown: unknown): WitFailure {
  if (thrown instanceof Terminal) return { tag: "terminal", val: anyText(thrown.message) };
  if (thrown instanceof RetryAfter) {
    const afterMs = u32("the afterMs of a RetryAfter", thrown.afterMs);
    return { tag: "retry-after", val: { message: anyText(thrown.message), afterMs } };
  }
  if (thrown instanceof Retry) return { tag: "retry", val: anyText(thrown.message) };
  if (thrown instanceof ThrottledError && thrown.retryAfterMs !== undefined) {
    const after = new RetryAfter(thrown.retryAfterMs, thrown.message);
    return { tag: "retry-after", val: { message: describe(thrown), afterMs: after.afterMs } };
  }
  if (thrown instanceof OarlockError) {
    const isLasting = LASTING.some((lasting) => thrown instanceof lasting);
    return { tag: isLasting ? "terminal" : "retry", val: describe(thrown) };
  }
  if (thrown instanceof ReferenceError && ABSENT.test(thrown.message)) {
    thrown.message += " (a component has neither a network, nor timers, nor the modules of Node.js)";
  }
  return { tag: "retry", val: withStack(thrown) };
}

/** Returns the text of an exception in one line. */
export function describe(thrown: unknown): string {
  return thrown instanceof Error ? `${anyText(thrown.name)}: ${anyText(thrown.message)}` : anyText(thrown);
}

/**
 * Returns the text of an exception with its stack, which QuickJS begins without the message and V8 with
 * it.
 */
export function withStack(thrown: unknown): string {
  const text = describe(thrown);
  if (!(thrown instanceof Error) || !thrown.stack) return text;
  const stack = anyText(thrown.stack).trimEnd();
  return stack.startsWith(text) ? stack : `${text}\n${stack}`;
}
