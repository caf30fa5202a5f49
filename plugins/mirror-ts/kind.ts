// The two kinds of objects that mirror copies.

import { annotation, type Lister, lister, type ObjectMeta, type Resource, resource } from "@oarlock/sdk";

/** The annotation of a source: the namespaces to copy it to, separated by commas, or `*`. */
export const MIRROR_TO = annotation("oarlock.dev/mirror-to");

/** The annotation of a copy: `namespace/name` of its source. mirror never changes an object without it. */
export const MIRRORED_FROM = annotation("oarlock.dev/mirrored-from");

/** A ConfigMap or a Secret. */
export interface Copied {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
  /** Secrets only. */
  type?: string;
  data?: Record<string, string>;
  /** ConfigMaps only. */
  binaryData?: Record<string, string>;
}

/** A kind of object that mirror copies. */
export interface Kind {
  readonly name: string;
  readonly resource: Resource<Copied>;
  /** With indices over the sources, by their annotation, and the copies, by their source. */
  readonly cached: Lister<Copied, "sources" | "copies">;
  /** The names of the watches of its sources and of its copies. */
  readonly sources: string;
  readonly copies: string;
}

/** The fields of a source that a copy has. */
export const CONTENT = ["data", "binaryData"] as const;

export const KINDS: readonly Kind[] = [kind("ConfigMap", "v1/configmaps"), kind("Secret", "v1/secrets")];

function kind(name: string, path: string): Kind {
  const of = resource<Copied>(path, name);
  const indices = { sources: { pointer: MIRROR_TO }, copies: { pointer: MIRRORED_FROM } };
  const lower = name.toLowerCase();
  return {
    name,
    resource: of,
    cached: lister(of, { indices }),
    sources: `${lower}-sources`,
    copies: `${lower}-copies`,
  };
}
