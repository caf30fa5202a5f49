// The sources, and the namespaces that they ask to be copied to.

import { config, lister } from "@oarlock/sdk";
import type { Copied, Kind } from "./kind.ts";

/** Names a source within its kind. */
export interface SourceKey {
  readonly namespace: string;
  readonly name: string;
}

export const namespaces = lister("v1/namespaces");

/** Returns the `namespace/name` of a source, as the annotation of its copies has it. */
export function toText({ namespace, name }: SourceKey): string {
  return `${namespace}/${name}`;
}

/** Parses the annotation of a copy. Returns `undefined` for any other text. */
export function fromText(text: string | undefined): SourceKey | undefined {
  const [namespace, name, ...others] = text?.split("/") ?? [];
  return namespace && name && others.length === 0 ? { namespace, name } : undefined;
}

/** Returns the namespaces that `*` does not include. */
export function exclusions(): Set<string> {
  const names = config.get<unknown>("/excludedNamespaces") ?? [];
  if (!Array.isArray(names) || !names.every((name) => typeof name === "string")) {
    throw new Error("excludedNamespaces in the configuration is not a list of names");
  }
  return new Set(names);
}

/** Returns the namespaces that a source is to be copied to, in order: those that can be written to. */
export function targetsOf(object: Copied, own: string): string[] {
  const mirrorTo = mirrorToOf(object);
  if (mirrorTo === undefined) return [];
  const rows = namespaces.list({ fields: { deleted: "/metadata/deletionTimestamp" } });
  const existing = [...rows].filter(({ fields }) => fields.deleted === undefined).map(({ name }) => name);
  return chosen(mirrorTo, own, existing, exclusions()).sort();
}

/** Returns the existing namespaces that `mirrorTo` names, except the source's own. */
export function chosen(mirrorTo: string, own: string, existing: string[], excluded: Set<string>): string[] {
  const named = new Set(mirrorTo.split(",").map((name) => name.trim()));
  const isChosen = (name: string) => named.has(name) || (named.has("*") && !excluded.has(name));
  return existing.filter((name) => name !== own && isChosen(name));
}

/**
 * Returns the value of the annotation; `undefined` for what is no source: a copy, or what is being
 * deleted.
 */
export function mirrorToOf({ metadata }: Copied): string | undefined {
  const annotations = metadata?.annotations ?? {};
  const isCopy = "oarlock.dev/mirrored-from" in annotations;
  return isCopy || metadata?.deletionTimestamp ? undefined : annotations["oarlock.dev/mirror-to"];
}

/** Returns all sources of a kind. */
export function* allSources({ cached }: Kind): IterableIterator<SourceKey> {
  for (const value of cached.indexValues("sources")) yield* cached.byIndex("sources", value, { fields: {} });
}

/** Returns the sources that the copies of a kind name. Some may not exist any more. */
export function allSourcesOfCopies({ cached }: Kind): SourceKey[] {
  return cached.indexValues("copies").flatMap((value) => fromText(value) ?? []);
}
