// Reads of the cache that all plugins share.

import type { Read, Index as WitIndex, IndexSource as WitIndexSource } from "oarlock:plugin/metadata@0.1.0";
import { cache as host } from "#host";
import { calling, finding } from "./calling.js";
import { checkChoice, present, TEXT, type Value } from "./choice.js";
import { boolean, object, oneOf, text } from "./conversion.js";
import { type Duration, toMs } from "./duration.js";
import { checkNames } from "./names.js";
import type { Fields, FieldValues } from "./pointer.js";
import {
  type KubernetesObject,
  type ObjectKey,
  pathOf,
  type Resource,
  resourceOf,
  toKey,
  toNamespaces,
  toTarget,
} from "./resource.js";
import { allPages, fromRow, type ListOptions, limitOf, projectionOf, type Row, type Rows } from "./rows.js";

/** The values by which an index finds an object. A pointer may have `*` for every element of a list. */
export type IndexSource = { label: string } | { pointer: string } | "owner-uid";

/** What a lister reads, beside its resource. */
export interface ListerOptions<Index extends string = string> {
  /** The lister's name, unique in the plugin; without it, the plural of the resource. */
  name?: string;
  /** One namespace; without it, all that the plugin's account may read. */
  namespace?: string;
  /** `metadata` if the plugin needs no more than that. */
  content?: "metadata" | "full";
  /** Whether a change of what `reconcile` has read for a key queues the key again. */
  wakes?: boolean;
  /** The indices over these objects, by name. */
  indices?: Readonly<Record<Index, IndexSource>>;
}

const OPTIONS: Record<keyof ListerOptions, true> = {
  name: true,
  namespace: true,
  content: true,
  wakes: true,
  indices: true,
};

type SourceName<T = IndexSource> = T extends object ? keyof T : never;

const SOURCES: Record<SourceName, Value> = { label: TEXT, pointer: TEXT };

/** Reads one resource from the cache. The plugin declares it in `listers`. */
export class Lister<T extends object = KubernetesObject, Index extends string = string> {
  readonly resource: Resource<T>;
  readonly name: string;
  readonly #options: ListerOptions<Index>;

  /** @internal */
  constructor(of: Resource<T>, options: ListerOptions<Index>) {
    this.resource = of;
    this.name = text("the name of a lister", options.name ?? of.plural);
    this.#options = options;
  }

  /** Returns one object, or some of its fields; `undefined` if the cache has no object of that name. */
  get(key: ObjectKey): T | undefined;
  get<const F extends Fields>(key: ObjectKey, options: { fields: F }): Row<FieldValues<T, F>> | undefined;
  get(key: ObjectKey, options: { fields?: Fields } = {}): unknown {
    const { fields } = object("the argument options of get", options);
    const [named, projection] = [toKey(key), projectionOf("get", fields)];
    const row = finding(() => host.get(this.name, named, projection));
    return row && fromRow(row, fields);
  }

  /** Returns the objects that match, or some of their fields. Fetches pages as they are needed. */
  list<const F extends Fields>(options: ListOptions<F> & { fields: F }): Rows<T, F>;
  list(options?: ListOptions<never>): IterableIterator<T>;
  list(options: ListOptions = {}): IterableIterator<unknown> {
    const { namespace, labelSelector = "", fields } = object("the argument options of list", options);
    const [namespaces, projection] = [toNamespaces("list", namespace), projectionOf("list", fields)];
    const selector = text("the option labelSelector of list", labelSelector);
    return allPages(
      (page) => calling(() => host.list(this.name, namespaces, selector, projection, page)),
      fields,
      limitOf("list", options),
    );
  }

  /** Returns the objects that have a value in an index, or some of their fields. */
  byIndex<const F extends Fields>(
    index: Index,
    value: string,
    options: IndexListOptions<F> & { fields: F },
  ): Rows<T, F>;
  byIndex(index: Index, value: string, options?: IndexListOptions<never>): IterableIterator<T>;
  byIndex(index: Index, value: string, options: IndexListOptions = {}): IterableIterator<unknown> {
    const { namespace, fields } = object("the argument options of byIndex", options);
    const [namespaces, projection] = [toNamespaces("byIndex", namespace), projectionOf("byIndex", fields)];
    const [named, wanted] = [this.#index(index), text("the argument value of byIndex", value)];
    return allPages(
      (page) => calling(() => host.byIndex(named, wanted, namespaces, projection, page)),
      fields,
      limitOf("byIndex", options),
    );
  }

  /** Returns the values in an index, sorted. */
  indexValues(index: Index): string[] {
    const named = this.#index(index);
    return calling(() => host.indexValues(named));
  }

  /** Returns whether the cache contains the whole first list. */
  hasSynced(): boolean {
    return calling(() => host.hasSynced(this.name));
  }

  /** Waits until the cache has what a write returned, at most five seconds; then throws a `TimeoutError`. */
  waitUntilSeen(written: { readonly resourceVersion: string }, timeout: Duration = "5s"): void {
    const { resourceVersion } = object("the argument written of waitUntilSeen", written);
    const version = text("the resourceVersion of what was written", resourceVersion);
    const ms = toMs("the argument timeout of waitUntilSeen", timeout);
    calling(() => host.waitUntilSeen(this.name, version, ms));
  }

  /** @internal */
  declared(): { read: Read; indices: WitIndex[] } {
    const { namespace, content = "full", wakes = false, indices = {} } = this.#options;
    const what = `the lister ${this.name}`;
    const read: Read = {
      name: this.name,
      target: toTarget(this.resource),
      namespaces: toNamespaces(what, namespace),
      content: oneOf(`the option content of ${what}`, content, ["metadata", "full"]),
      wakes: boolean(`the option wakes of ${what}`, wakes),
    };
    const sources = Object.entries<IndexSource>(indices);
    return {
      read,
      indices: sources.map(([index, source]) => ({
        name: this.#index(index),
        lister: this.name,
        source: toSource(`the index ${index} of ${what}`, source),
      })),
    };
  }

  /** Returns the name of an index in the plugin. */
  #index(index: string): string {
    return `${this.name}/${text("the name of an index", index)}`;
  }
}

/** The listers that modules have made, before the host's first call. */
const early: Lister<object, string>[] = [];
let isCalled = false;

/** Notes that the host calls: all modules have run. */
export function noteCall(): void {
  isCalled = true;
}

/** Throws if a module has made a lister that the plugin does not declare: each of its reads would fail. */
export function checkDeclared(listers: readonly Lister<object, string>[]): void {
  const names = new Set(listers.map(({ name }) => name));
  const missing = early.find(({ name }) => !names.has(name));
  if (missing === undefined) return;
  const { name, resource } = missing;
  throw new TypeError(
    `the lister ${name} of ${pathOf(resource)} is not in \`listers\` of the plugin: add it`,
  );
}

/** Which objects of an index a list contains, and how much of each. */
export type IndexListOptions<F extends Fields = Fields> = Omit<ListOptions<F>, "labelSelector">;

/** Returns a lister of a resource: `lister(pods, { indices: { byNode: { pointer: "/spec/nodeName" } } })`. */
export function lister<T extends object = KubernetesObject, const Index extends string = never>(
  of: Resource<T> | string,
  options: ListerOptions<Index> = {},
): Lister<T, Index> {
  const read = resourceOf(of, "the resource of a lister");
  const what = `the lister of ${pathOf(read)}`;
  checkNames(what, options, OPTIONS);
  const indices: Readonly<Record<string, IndexSource>> = options.indices ?? {};
  for (const [index, source] of Object.entries(object(`the option indices of ${what}`, indices))) {
    checkSource(`the index ${index} of ${what}`, source);
  }
  const made = new Lister(read, options);
  if (!isCalled) early.push(made);
  return made;
}

/** Throws unless it is `owner-uid`, or has one source with a value of its type. */
function checkSource(what: string, source: IndexSource): void {
  if (source === "owner-uid") return;
  if (typeof source !== "object" || source === null) {
    const sources = Object.keys(SOURCES).join(", ");
    throw new TypeError(`${what} is ${source}; give "owner-uid", or an object with one of ${sources}`);
  }
  checkChoice(what, source, SOURCES, { one: "source", instead: "declare an index for each" });
}

function toSource(what: string, given: IndexSource): WitIndexSource {
  if (given === "owner-uid") return { tag: "owner-uid" };
  const source = present(given);
  if ("label" in source) return { tag: "label", val: text(what, source.label) };
  return { tag: "pointer", val: text(what, source.pointer) };
}
