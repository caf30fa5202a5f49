// The content of a copy.

import { CONTENT, type Copied, type Kind } from "./kind.ts";
import { type SourceKey, toText } from "./source.ts";

/** Returns the copy of a source for a namespace. */
export function copyOf(kind: Kind, source: Copied, key: SourceKey, namespace: string): Copied {
  const { type, data, binaryData } = source;
  return {
    apiVersion: "v1",
    kind: kind.name,
    metadata: {
      name: key.name,
      namespace,
      labels: { "app.kubernetes.io/managed-by": "oarlock-mirror" },
      annotations: { "oarlock.dev/mirrored-from": toText(key) },
    },
    // JSON has no fields of the value `undefined`.
    ...JSON.parse(JSON.stringify({ type, data, binaryData })),
  };
}

/** Returns whether an object is annotated as a copy of this source. */
export function belongsTo(object: Copied, source: SourceKey): boolean {
  return object.metadata?.annotations?.["oarlock.dev/mirrored-from"] === toText(source);
}

/** Returns the merge patch that makes a copy equal to its source; `undefined` if it is equal already. */
export function difference(copy: Copied, source: Copied): object | undefined {
  const changed = CONTENT.map((field) => [field, changes(copy[field] ?? {}, source[field] ?? {})] as const);
  const patch = changed.filter(([, values]) => Object.keys(values).length > 0);
  return patch.length > 0 ? Object.fromEntries(patch) : undefined;
}

/** Returns the changed values, and null for each that is gone. */
function changes(old: Record<string, string>, now: Record<string, string>): Record<string, string | null> {
  const gone = Object.keys(old).filter((name) => !(name in now));
  const changed = Object.entries(now).filter(([name, value]) => old[name] !== value);
  return Object.fromEntries([...gone.map((name) => [name, null]), ...changed]);
}
