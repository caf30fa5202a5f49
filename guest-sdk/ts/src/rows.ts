// Answers of the cache and the client: pages of rows.

import type { Page, PageRequest, Projection, Row as WitRow } from "oarlock:plugin/types@0.1.0";
import { pointers, u32 } from "./conversion.js";
import type { Fields, FieldValues } from "./pointer.js";
import type { ObjectRef } from "./resource.js";

/** An object in an answer, with the fields that were asked for. */
export interface Row<V> extends ObjectRef {
  readonly fields: V;
}

/** Which objects a list contains, and how much of each. */
export interface ListOptions<F extends Fields = Fields> {
  /** One namespace; without it, all that the plugin's account may read. */
  namespace?: string | undefined;
  /** A label selector of Kubernetes, such as `app=web,tier in (a,b),!legacy`. */
  labelSelector?: string | undefined;
  /** The fields of each row, in place of whole objects; `{}` for keys only. */
  fields?: F | undefined;
  /** The number of objects that are fetched at once; without it, the host's choice. */
  pageSize?: number | undefined;
}

export function projectionOf(what: string, fields: Fields | undefined): Projection {
  if (fields === undefined) return { tag: "json" };
  const wanted = pointers("option", what, fields);
  return wanted.length === 0 ? { tag: "keys" } : { tag: "fields", val: wanted };
}

/** Returns what a caller gets for a row: the fields, or the object. */
export function fromRow(row: WitRow, fields: Fields | undefined): unknown {
  if (fields === undefined) return JSON.parse(row.json ?? "null");
  const names = Object.keys(fields);
  const values = names.map((name, n) => [name, parseField(row.fields[n])]);
  return { ...row.object, fields: Object.fromEntries(values) };
}

/** Returns the number of objects of a page; 0 if the host chooses it. */
export function limitOf(what: string, { pageSize }: ListOptions): number {
  return pageSize == null ? 0 : u32(`the option pageSize of ${what}`, pageSize);
}

/** Returns the objects of all pages. Fetches a page when its first object is asked for. */
export function* allPages(
  fetch: (page: PageRequest) => Page,
  fields: Fields | undefined,
  limit: number,
): IterableIterator<unknown> {
  let continueToken = "";
  do {
    const page = fetch({ limit, continueToken });
    for (const row of page.rows) yield fromRow(row, fields);
    continueToken = page.continueToken;
  } while (continueToken !== "");
}

/** Returns the value of a field from its JSON text. An absent field is null in QuickJS. */
export function parseField(text: string | null | undefined): unknown {
  return text == null ? undefined : (JSON.parse(text) ?? undefined);
}

export type Rows<T, F extends Fields> = IterableIterator<Row<FieldValues<T, F>>>;
