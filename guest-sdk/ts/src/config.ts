// The operator's configuration: the value of `config` in the plugin's file. It does not change while an
// instance exists, so each value is read once.

import { config as host, instance } from "#host";
import { calling } from "./calling.js";
import { text } from "./conversion.js";
import { parseField } from "./rows.js";

let values = new Map<string, unknown>();
let owner: number | undefined;

/**
 * Returns the value at a JSON pointer of the configuration; `undefined` if there is none. Nothing checks
 * its type.
 */
export function get<V = unknown>(pointer: string): V | undefined {
  const at = text("the argument pointer of config.get", pointer);
  return read(at, () => parseField(host.get(at))) as V | undefined;
}

/** Returns the whole configuration. */
export function all<V extends object = Record<string, unknown>>(): V {
  return read("", () => JSON.parse(host.json())) as V;
}

function read(pointer: string, ask: () => unknown): unknown {
  if (owner !== instance()) {
    owner = instance();
    values = new Map();
  }
  if (!values.has(pointer)) values.set(pointer, calling(ask));
  return values.get(pointer);
}
