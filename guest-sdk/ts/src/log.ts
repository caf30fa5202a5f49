// Lines in the host's log, with the plugin's name.

import { log as host } from "#host";
import { anyText, oneOf } from "./conversion.js";
import { withStack } from "./failure.js";

/** A level of a line. */
export type Level = "trace" | "debug" | "info" | "warn" | "error";

const LEVELS: readonly Level[] = ["trace", "debug", "info", "warn", "error"];

/** The pairs of a line. Pairs with the value `undefined` are left out; objects are written as JSON. */
export type Pairs = Readonly<Record<string, unknown>>;

/** Returns whether the host writes lines of this level. */
export function enabled(level: Level): boolean {
  return host.enabled(oneOf("the argument level of log.enabled", level, LEVELS));
}

/** Writes a line of the level trace. */
export function trace(message: string, pairs?: Pairs): void {
  write("trace", message, pairs);
}

/** Writes a line of the level debug. */
export function debug(message: string, pairs?: Pairs): void {
  write("debug", message, pairs);
}

/** Writes a line of the level info: `log.info("copied", { to: namespace })`. */
export function info(message: string, pairs?: Pairs): void {
  write("info", message, pairs);
}

/** Writes a line of the level warn. */
export function warn(message: string, pairs?: Pairs): void {
  write("warn", message, pairs);
}

/** Writes a line of the level error. */
export function error(message: string, pairs?: Pairs): void {
  write("error", message, pairs);
}

/** Writes a line of whatever values it is given: a plugin must not fail because of its log. */
function write(level: Level, message: unknown, pairs: unknown = {}): void {
  if (host.enabled(level)) host.log(level, textOf(message), toPairs(pairs));
}

function toPairs(pairs: unknown): { name: string; value: string }[] {
  const given = typeof pairs === "object" && pairs !== null ? pairs : { value: pairs };
  try {
    const entries = Object.keys(given).map((name) => [name, read(given, name)] as const);
    return entries
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => ({ name: anyText(name), value: textOf(value) }));
  } catch (error) {
    // A proxy that does not say its names.
    return [{ name: "error", value: unreadable(error) }];
  }
}

/** Returns the value of a pair; for one whose getter throws, the text of the exception. */
function read(pairs: object, name: string): unknown {
  try {
    return Reflect.get(pairs, name);
  } catch (error) {
    return unreadable(error);
  }
}

function unreadable(error: unknown): string {
  return `cannot be read: ${anyText(error)}`;
}

/** Returns the text of a value. Never throws. */
export function textOf(value: unknown): string {
  try {
    if (value instanceof Error) return withStack(value);
  } catch (error) {
    // Its name, message or stack has a getter that throws.
    return unreadable(error);
  }
  if (typeof value !== "object" || value === null) return anyText(value);
  try {
    return anyText(
      JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}` : part)) ?? value,
    );
  } catch {
    return anyText(value);
  }
}
