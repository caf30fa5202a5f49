// JSON pointers and patches, for the fake host.

import { InvalidError } from "../errors.js";
import { thrown } from "./recorded.js";

type Container = Record<string, unknown>;

/** Returns the value at a JSON pointer; `undefined` if there is none. */
export function valueAt(document: unknown, pointer: string): unknown {
  return valuesAt(document, pointer, false)[0];
}

/** Returns the values at a JSON pointer, in which a segment `*` stands for every element of a list. */
export function valuesAt(document: unknown, pointer: string, hasWildcards = true): unknown[] {
  let values = [document];
  for (const segment of segmentsOf(pointer)) {
    values = values.flatMap((value) => {
      if (hasWildcards && segment === "*" && Array.isArray(value)) return value;
      const isContainer = typeof value === "object" && value !== null && Object.hasOwn(value, segment);
      return isContainer ? [(value as Container)[segment]] : [];
    });
  }
  return values;
}

/** Returns the JSON text at a pointer; null, as in QuickJS, if there is no value. */
export function textAt(document: unknown, pointer: string): string | undefined {
  const value = valueAt(document, pointer);
  return value === undefined ? (null as unknown as undefined) : JSON.stringify(value);
}

/** Returns a copy of a JSON value. */
export function copyOf<V>(value: V): V {
  return JSON.parse(JSON.stringify(value)) as V;
}

/** Returns a document to which a merge patch was applied (RFC 7396). */
export function merged(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return copyOf(patch);
  const result: Container = isObject(document) ? { ...document } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

/** Returns a document to which a JSON patch was applied (RFC 6902, without `move` and `copy`). */
export function patched(document: unknown, operations: unknown): unknown {
  const result = { document: copyOf(document) };
  for (const { op, path, value } of operations as { op: string; path: string; value?: unknown }[]) {
    const segments = ["document", ...segmentsOf(path)];
    const last = segments.pop() ?? "";
    const parent = segments.reduce(
      (at: unknown, segment) => (isContainer(at) ? at[segment] : undefined),
      result,
    );
    const exists = isContainer(parent) && Object.hasOwn(parent, last);
    if (!isContainer(parent) || (op !== "add" && !exists)) throw invalid(`${op}: there is no ${path}`);
    if (op === "test") {
      if (JSON.stringify(parent[last]) !== JSON.stringify(value))
        throw invalid(`test: ${path} has another value`);
    } else if (op === "remove") {
      if (Array.isArray(parent)) parent.splice(Number(last), 1);
      else delete parent[last];
    } else if (op === "add" && Array.isArray(parent)) {
      parent.splice(last === "-" ? parent.length : Number(last), 0, value);
    } else if (op === "add" || op === "replace") {
      parent[last] = value;
    } else {
      throw invalid(`the fake host does not know the operation ${op} of JSON patches`);
    }
  }
  return result.document;
}

/** Returns whether a label selector matches these labels. */
export function matches(labels: Record<string, string> = {}, selector: string): boolean {
  const requirements = selector.match(/[^,(]+(\([^)]*\))?/g) ?? [];
  return requirements.every((text) => {
    const requirement = text.trim();
    const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(requirement);
    if (set) {
      const [, name = "", operator, list = ""] = set;
      const isIn = list.split(",").some((value) => value.trim() === labels[name]);
      return isIn === (operator === "in");
    }
    const equality = /^(\S+?)\s*(==|=|!=)\s*(\S*)$/.exec(requirement);
    if (equality) {
      const [, name = "", operator, value] = equality;
      return (labels[name] === value) === (operator !== "!=");
    }
    if (requirement.startsWith("!")) return !Object.hasOwn(labels, requirement.slice(1));
    if (/^\S+$/.test(requirement)) return Object.hasOwn(labels, requirement);
    throw invalid(`the label selector ${JSON.stringify(selector)} is malformed`);
  });
}

function segmentsOf(pointer: string): string[] {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) throw invalid(`the pointer ${JSON.stringify(pointer)} does not begin with /`);
  const segments = pointer.slice(1).split("/");
  return segments.map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function isObject(value: unknown): value is Container {
  return isContainer(value) && !Array.isArray(value);
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function invalid(message: string): Error {
  return thrown(new InvalidError(message));
}
