// Lines in the host's log, with the plugin's name.

import { log as host } from "#host";
import { withStack } from "./failure.js";

/** A level of a line. */
export type Level = "trace" | "debug" | "info" | "warn" | "error";

/** The pairs of a line. Pairs with the value `undefined` are left out; objects are written as JSON. */
export type Pairs = Readonly<Record<string, unknown>>;

/** Returns whether the host writes lines of this level. */
export function enabled(level: Level): boolean {
  return host.enabled(level);
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

function write(level: Level, message: string, pairs: Pairs = {}): void {
  if (!host.enabled(level)) return;
  const entries = Object.entries(pairs).filter(([, value]) => value !== undefined);
  host.log(
    level,
    message,
    entries.map(([name, value]) => ({ name, value: textOf(value) })),
  );
}

/** Returns the text of a value. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return withStack(value);
  if (typeof value !== "object" || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
