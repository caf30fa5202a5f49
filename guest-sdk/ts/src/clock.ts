// The host's clock. `plugin test` and the tests of a plugin can set it, unlike `Date.now()`.

import { clock as host } from "#host";

/** Returns the current time. */
export function now(): Date {
  const { seconds, nanoseconds } = host.now();
  return new Date(seconds * 1_000 + Math.floor(nanoseconds / 1_000_000));
}

/** Returns the milliseconds since this instance of the plugin was created. Never decreases. */
export function elapsed(): number {
  return host.elapsedMs();
}
