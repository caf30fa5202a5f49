// The plugin's own metrics on the host's metrics page, as `oarlock_guest_NAME{plugin="…", …}`.

import { metrics as host } from "#host";
import { calling } from "./calling.js";

/** The labels of a series. */
export type Labels = Readonly<Record<string, string>>;

/** Increases a counter: `metrics.add("objects_deleted", 1, { kind: "Job" })`. */
export function add(name: string, by = 1, labels: Labels = {}): void {
  calling(() => host.counterAdd(name, by, entries(labels)));
}

/** Sets a gauge to a value. */
export function set(name: string, value: number, labels: Labels = {}): void {
  calling(() => host.gaugeSet(name, value, entries(labels)));
}

function entries(labels: Labels): { name: string; value: string }[] {
  return Object.entries(labels).map(([name, value]) => ({ name, value }));
}
