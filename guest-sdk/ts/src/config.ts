// The operator's configuration: the value of `config` in the plugin's file. It does not change while an
// instance exists, so values are kept. They are frozen, since every caller gets the same.

import { config as host, instance } from "#host";
import { calling } from "./calling.js";
import { text } from "./conversion.js";
import { parseField } from "./rows.js";

/** The number of values that are kept. A plugin may make pointers of what it reads, so it has a bound. */
const MOST_VALUES = 64;

/** A JSON value that cannot be changed, with all that it contains: its lists are `readonly`. */
export type Frozen<V> = unknown extends V
  ? V
  : V extends object
    ? { readonly [Name in keyof V]: Frozen<V[Name]> }
    : V;

let values = new Map<string, unknown>();
let owner: number | undefined;

/**
 * Returns the value at a JSON pointer of the configuration, which is frozen: copy it to change it. Returns
 * `undefined` if there is none. Nothing checks its type.
 */
export function get<V = unknown>(pointer: string): Frozen<V> | undefined {
  const at = text("the argument pointer of config.get", pointer);
  return read(at, () => parseField(host.get(at))) as Frozen<V> | undefined;
}

/** Returns the whole configuration, which is frozen: copy it to change it. */
export function all<V extends object = Record<string, unknown>>(): Frozen<V> {
  return read("", () => JSON.parse(host.json())) as Frozen<V>;
}

function read(pointer: string, ask: () => unknown): unknown {
  if (owner !== instance()) {
    owner = instance();
    values = new Map();
  }
  if (!values.has(pointer)) {
    const value = frozen(calling(ask));
    if (values.size >= MOST_VALUES) values.clear();
    values.set(pointer, value);
  }
  return values.get(pointer);
}

/** Returns a JSON value that cannot be changed, with all that it contains. */
function frozen(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
