// Durations, as Kubernetes and Go write them.

import { MAX_NUMBER, shown, wrongType } from "./conversion.js";

/** Milliseconds, or a text such as `500ms`, `30s`, `10m`, `12h` or `7d`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d"}`;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Returns the milliseconds of a text such as `30m`, `7d` or `1h30m`.
 *
 * @throws {RangeError} For any other text.
 */
export function parseDuration(text: string): number {
  if (typeof text !== "string" || !/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) {
    throw new RangeError(`${shown(text)} is not a duration such as 30s, 10m, 12h or 7d`);
  }
  let ms = 0;
  for (const [, count, unit] of text.matchAll(/([\d.]+)(ms|s|m|h|d)/g)) {
    ms += Number(count) * (UNITS[unit ?? ""] ?? Number.NaN);
  }
  // 1.1h is 3960000.0000000005 ms in floating point.
  return Math.round(ms * 1e6) / 1e6;
}

/** Returns whole milliseconds, rounded up, and at most 24 days, unless there is another bound. */
export function toMs(what: string, duration: Duration, most = MAX_NUMBER): number {
  const ms = inMs(what, duration);
  if (!(ms >= 0)) throw new RangeError(`${what} is ${duration}; give milliseconds, 0 or more`);
  return Math.min(Math.ceil(ms), most);
}

/**
 * Returns the seconds of an interval, which are whole and within these bounds.
 *
 * @throws {RangeError} For any other interval.
 */
export function toSeconds(what: string, duration: Duration, least = 0, most = MAX_NUMBER): number {
  const seconds = inMs(what, duration) / 1_000;
  if (!(Number.isInteger(seconds) && seconds >= least && seconds <= most)) {
    const given = typeof duration === "number" ? `${duration} ms` : duration;
    throw new RangeError(`${what} is ${given}; give whole seconds, ${least} to ${most}, such as "90s"`);
  }
  return seconds;
}

function inMs(what: string, duration: Duration): number {
  if (typeof duration === "number") return duration;
  if (typeof duration === "string") return parseDuration(duration);
  throw wrongType(what, duration, 'milliseconds, or a text such as "30s"');
}
