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
  if (!host.enabled(level)) return;
  const given = typeof pairs === "object" && pairs !== null ? pairs : { value: pairs };
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  host.log(
    level,
    textOf(message),
    entries.map(([name, value]) => ({ name: anyText(name), value: textOf(value) })),
  );
}

/** Returns the text of a value. */
export function textOf(value: unknown): string {
  if (value instanceof Error) return withStack(value);
  if (typeof value !== "object" || value === null) return anyText(value);
  try {
    return anyText(
      JSON.stringify(value, (_, part) => (typeof part === "bigint" ? `${part}` : part)) ?? value,
    );
  } catch {
    return anyText(value);
  }
}
