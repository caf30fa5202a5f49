// The plugin's own metrics on the host's metrics page, as `oarlock_guest_NAME{plugin="…", …}`.

import { metrics as host } from "#host";
import { calling } from "./calling.js";
import { f64, object, text } from "./conversion.js";

/** The labels of a series. */
export type Labels = Readonly<Record<string, string>>;

/** Increases a counter: `metrics.add("objects_deleted", 1, { kind: "Job" })`. */
export function add(name: string, by = 1, labels: Labels = {}): void {
  const [named, increase] = [
    text("the argument name of metrics.add", name),
    f64("the argument by of metrics.add", by),
  ];
  const series = entries("the argument labels of metrics.add", labels);
  calling(() => host.counterAdd(named, increase, series));
}

/** Sets a gauge to a value. */
export function set(name: string, value: number, labels: Labels = {}): void {
  const [named, level] = [
    text("the argument name of metrics.set", name),
    f64("the argument value of metrics.set", value),
  ];
  const series = entries("the argument labels of metrics.set", labels);
  calling(() => host.gaugeSet(named, level, series));
}

function entries(what: string, labels: Labels): { name: string; value: string }[] {
  return Object.entries(object(what, labels)).map(([name, value]) => ({
    name: text(`a name in ${what}`, name),
    value: text(`the label ${name} in ${what}`, value),
  }));
}
