// Reads of the cache that all plugins share.

import type { Read, Index as WitIndex, IndexSource as WitIndexSource } from "oarlock:plugin/metadata@0.1.0";
import { cache as host } from "#host";
import { calling, finding } from "./calling.js";
import { checkChoice, present, TEXT, type Value } from "./choice.js";
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
import { allPages, fromRow, type ListOptions, projectionOf, type Row, type Rows } from "./rows.js";

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
    this.name = options.name ?? of.plural;
    this.#options = options;
  }

  /** Returns one object, or some of its fields; `undefined` if the cache has no object of that name. */
  get(key: ObjectKey): T | undefined;
  get<const F extends Fields>(key: ObjectKey, options: { fields: F }): Row<FieldValues<T, F>> | undefined;
  get(key: ObjectKey, { fields }: { fields?: Fields } = {}): unknown {
    const row = finding(() => host.get(this.name, toKey(key), projectionOf(fields)));
    return row && fromRow(row, fields);
  }

  /** Returns the objects that match, or some of their fields. Fetches pages as they are needed. */
  list<const F extends Fields>(options: ListOptions<F> & { fields: F }): Rows<T, F>;
  list(options?: ListOptions<never>): IterableIterator<T>;
  list(options: ListOptions = {}): IterableIterator<unknown> {
    const { namespace, labelSelector = "", fields } = options;
    const [namespaces, projection] = [toNamespaces(namespace), projectionOf(fields)];
    return allPages(
      (page) => calling(() => host.list(this.name, namespaces, labelSelector, projection, page)),
      options,
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
    const { namespace, fields } = options;
    const [namespaces, projection] = [toNamespaces(namespace), projectionOf(fields)];
    return allPages(
      (page) => calling(() => host.byIndex(this.#index(index), value, namespaces, projection, page)),
      options,
    );
  }

  /** Returns the values in an index, sorted. */
  indexValues(index: Index): string[] {
    return calling(() => host.indexValues(this.#index(index)));
  }

  /** Returns whether the cache contains the whole first list. */
  hasSynced(): boolean {
    return calling(() => host.hasSynced(this.name));
  }

  /** Waits until the cache has what a write returned, at most five seconds; then throws a `TimeoutError`. */
  waitUntilSeen(written: { readonly resourceVersion: string }, timeout: Duration = "5s"): void {
    calling(() => host.waitUntilSeen(this.name, written.resourceVersion, toMs(timeout)));
  }

  /** @internal */
  declared(): { read: Read; indices: WitIndex[] } {
    const { namespace, content = "full", wakes = false, indices = {} } = this.#options;
    const read = {
      name: this.name,
      target: toTarget(this.resource),
      namespaces: toNamespaces(namespace),
      content,
      wakes,
    };
    const sources = Object.entries<IndexSource>(indices);
    return {
      read,
      indices: sources.map(([index, source]) => ({
        name: this.#index(index),
        lister: this.name,
        source: toSource(source),
      })),
    };
  }

  /** Returns the name of an index in the plugin. */
  #index(index: string): string {
    return `${this.name}/${index}`;
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
  for (const [index, source] of Object.entries<IndexSource>(options.indices ?? {})) {
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

function toSource(given: IndexSource): WitIndexSource {
  if (given === "owner-uid") return { tag: "owner-uid" };
  const source = present(given);
  if ("label" in source) return { tag: "label", val: source.label };
  return { tag: "pointer", val: source.pointer };
}
