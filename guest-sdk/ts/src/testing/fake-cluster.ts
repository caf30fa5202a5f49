// The objects of a fake host, which are those of its API server and of its caches.

import type { ObjectKey, Page, PageRequest, Projection, Row } from "oarlock:plugin/types@0.1.0";
import type { Writable } from "../client.js";
import { AlreadyExistsError, ConflictError, InvalidError, NotFoundError } from "../errors.js";
import type { KubernetesObject, ObjectMeta } from "../resource.js";
import { show, thrown } from "./recorded.js";
import { copyOf, merged, textAt } from "./values.js";

/** An object, with the metadata that the API server sets. */
export interface StoredObject extends KubernetesObject {
  metadata: ObjectMeta & { name: string; uid: string; resourceVersion: string };
}

/** What a write requires of the object that it changes. */
interface Required {
  uid?: string | undefined;
  resourceVersion?: string | undefined;
}

/** Objects, by the path of their resource and their key. */
export class FakeCluster {
  readonly #objects = new Map<string, Map<string, StoredObject>>();
  readonly #now: () => Date;
  #version = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  /** Creates or replaces an object, and sets its uid, resourceVersion and creationTimestamp. */
  put(path: string, object: Writable): StoredObject {
    this.#version += 1;
    const n = this.#version;
    const metadata = object.metadata ?? {};
    const name = metadata.name ?? (metadata.generateName && `${metadata.generateName}${n}`);
    if (!name) throw thrown(new InvalidError("the object has no name"));
    const old = this.find(path, { namespace: metadata.namespace ?? "", name });
    const stored = {
      ...copyOf(object),
      metadata: {
        ...copyOf(metadata),
        name,
        uid: metadata.uid ?? old?.metadata.uid ?? `uid-${n}`,
        creationTimestamp:
          metadata.creationTimestamp ?? old?.metadata.creationTimestamp ?? timestamp(this.#now()),
        resourceVersion: String(n),
      },
    };
    const objects = this.#objects.get(path) ?? new Map<string, StoredObject>();
    this.#objects.set(path, objects.set(show(stored.metadata), stored));
    return stored;
  }

  find(path: string, key: ObjectKey): StoredObject | undefined {
    return this.#objects.get(path)?.get(show(key));
  }

  /** Returns an object; throws what an import throws if it does not exist, or is not as required. */
  get(path: string, key: ObjectKey, required: Required = {}): StoredObject {
    const object = this.find(path, key);
    if (object === undefined) throw thrown(new NotFoundError(`there is no ${path} ${show(key)}`));
    const { uid, resourceVersion } = object.metadata;
    if ((required.uid ?? uid) !== uid || (required.resourceVersion ?? resourceVersion) !== resourceVersion) {
      throw thrown(new ConflictError(`${path} ${show(key)} has changed`));
    }
    return object;
  }

  create(path: string, namespace: string, object: KubernetesObject): StoredObject {
    const own = object.metadata?.namespace ?? namespace;
    if (own !== namespace) throw thrown(new InvalidError(`the object has the namespace ${own}`));
    const metadata = namespace === "" ? { ...object.metadata } : { ...object.metadata, namespace };
    if (metadata.name && this.find(path, { namespace, name: metadata.name })) {
      throw thrown(new AlreadyExistsError(`${path} ${show(metadata)} exists already`));
    }
    return this.put(path, { ...object, metadata });
  }

  /** Removes an object, or marks it as being deleted if it has finalizers. */
  delete(path: string, key: ObjectKey, required: Required): StoredObject {
    const object = this.get(path, key, required);
    if (object.metadata.finalizers?.length) {
      const metadata = { deletionTimestamp: timestamp(this.#now()) };
      return this.put(path, merged(object, { metadata }) as KubernetesObject);
    }
    this.#objects.get(path)?.delete(show(key));
    return object;
  }

  /** Returns all objects of a resource, ordered by key. */
  all(path: string): StoredObject[] {
    const objects = [...(this.#objects.get(path) ?? [])];
    return objects.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }
}

/** Returns an object as a row. */
export function rowOf(object: StoredObject, projection: Projection): Row {
  const { namespace = "", name, uid, resourceVersion } = object.metadata;
  const fields = projection.tag === "fields" ? projection.val.map((pointer) => textAt(object, pointer)) : [];
  const row: Row = { object: { namespace, name, uid, resourceVersion }, fields };
  return projection.tag === "json" ? { ...row, json: JSON.stringify(object) } : row;
}

/** Returns the page that was asked for. Its token is the key of its last object. */
export function pageOf(
  objects: StoredObject[],
  projection: Projection,
  { limit, continueToken }: PageRequest,
): Page {
  const rest = objects.filter(({ metadata }) => show(metadata) > continueToken);
  const shown = rest.slice(0, limit || 1_000);
  const last = shown.at(-1);
  const hasMore = last !== undefined && shown.length < rest.length;
  return {
    rows: shown.map((object) => rowOf(object, projection)),
    continueToken: hasMore ? show(last.metadata) : "",
  };
}

function timestamp(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
