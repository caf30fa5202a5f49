// Requests to the API server, made as the plugin's ServiceAccount.

import type { Preconditions as WitPreconditions, Written as WitWritten } from "oarlock:plugin/client@0.1.0";
import type { GroupVersionResource, Page, PageRequest } from "oarlock:plugin/types@0.1.0";
import { client as host } from "#host";
import { calling, finding } from "./calling.js";
import { LimitExceededError } from "./errors.js";
import type { Fields } from "./pointer.js";
import {
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type Resource,
  resourceOf,
  toKey,
  toNamespaces,
  toTarget,
} from "./resource.js";
import { allPages, type ListOptions, projectionOf, type Rows } from "./rows.js";

/** The number of objects of a page of a live list: what the host takes if it is asked for none. */
const ROWS_OF_A_PAGE = 500;

/**
 * The object after a write. It is a key of the object. Pass it to `waitUntilSeen` of a lister before
 * reading the object from the cache.
 */
export interface Written {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/**
 * What must hold for a write, else it throws a `ConflictError`. The metadata of an object is one, and a
 * row.
 */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** An object to write: its metadata names it. */
export interface Writable {
  metadata?: ObjectMeta | undefined;
}

/** A write to an object or its subresource, such as `status`. */
export interface WriteOptions {
  subresource?: string;
  preconditions?: Preconditions | undefined;
}

/** The format of a patch: RFC 7396, RFC 6902, or that of Kubernetes for built-in resources. */
export type PatchType = "merge" | "json" | "strategic";

/** Which objects a list contains, and how much of each. */
export interface LiveListOptions<F extends Fields = Fields> extends ListOptions<F> {
  /** A field selector of Kubernetes, such as `metadata.name=web`. */
  fieldSelector?: string;
}

const FORMATS = { merge: "merge-patch", json: "json-patch", strategic: "strategic-merge-patch" } as const;

/** Returns the current object, or its subresource; `undefined` if it does not exist. */
export function get<T extends object = KubernetesObject>(
  resource: Resource<T> | string,
  key: ObjectKey,
  { subresource = "" }: { subresource?: string } = {},
): T | undefined {
  const text = finding(() => host.get(targetOf("get", resource), toKey(key), subresource));
  return text === undefined ? undefined : (JSON.parse(text) as T);
}

/**
 * Returns the objects that match as the API server has them now, or some of their fields. Fetches pages
 * as they are needed; throws a `GoneError` if the API server has forgotten the state that they show.
 *
 * A lister is cheaper from the second read on.
 */
export function list<T extends object = KubernetesObject, const F extends Fields = Fields>(
  resource: Resource<T> | string,
  options: LiveListOptions<F> & { fields: F },
): Rows<T, F>;
export function list<T extends object = KubernetesObject>(
  resource: Resource<T> | string,
  options?: LiveListOptions<never>,
): IterableIterator<T>;
export function list(
  resource: Resource<object> | string,
  options: LiveListOptions = {},
): IterableIterator<unknown> {
  const { namespace, labelSelector = "", fieldSelector = "", fields } = options;
  const [target, namespaces, projection] = [
    targetOf("list", resource),
    toNamespaces(namespace),
    projectionOf(fields),
  ];
  let limit = options.pageSize || ROWS_OF_A_PAGE;
  const fetch = ({ continueToken }: PageRequest): Page => {
    for (;;) {
      try {
        const page = { limit, continueToken };
        return calling(() => host.list(target, namespaces, labelSelector, fieldSelector, projection, page));
      } catch (error) {
        if (!(error instanceof LimitExceededError) || limit <= 1) throw error;
        // The objects of the page are too large together.
        limit = Math.floor(limit / 2);
      }
    }
  };
  return allPages(fetch, options);
}

/** Creates an object. `metadata.generateName` works as in Kubernetes. */
export function create<T extends Writable>(resource: Resource<T> | string, object: T): Written {
  const namespace = object.metadata?.namespace ?? "";
  return writing(namespace, () =>
    host.create(targetOf("create", resource), namespace, JSON.stringify(object)),
  );
}

/**
 * Applies an object, server-side, with the plugin's name as field manager. With `force` the plugin takes
 * over the fields of other managers, which are a `ConflictError` without it.
 */
export function apply<T extends Writable>(
  resource: Resource<T> | string,
  object: Partial<T> & Writable,
  { subresource = "", force = false, preconditions }: WriteOptions & { force?: boolean } = {},
): Written {
  const [target, key] = [targetOf("apply", resource), toKey(object.metadata ?? {})];
  const [text, required] = [JSON.stringify(object), toPreconditions(preconditions)];
  return writing(key.namespace, () => host.apply(target, key, subresource, text, force, required));
}

/** Changes an object, by a merge patch if `type` does not say another format. */
export function patch(
  resource: Resource<object> | string,
  key: ObjectKey,
  patch: object,
  { subresource = "", type = "merge", preconditions }: WriteOptions & { type?: PatchType } = {},
): Written {
  const [target, checked] = [targetOf("patch", resource), toKey(key)];
  const [text, required] = [JSON.stringify(patch), toPreconditions(preconditions)];
  return writing(checked.namespace, () =>
    host.patch(target, checked, subresource, FORMATS[type], text, required),
  );
}

/** Replaces an object by a changed copy of what `get` or `list` of this client has returned. */
export function replace<T extends Writable>(
  resource: Resource<T> | string,
  object: T,
  { subresource = "" }: { subresource?: string } = {},
): Written {
  const [target, key] = [targetOf("replace", resource), toKey(object.metadata ?? {})];
  return writing(key.namespace, () => host.replace(target, key, subresource, JSON.stringify(object)));
}

/** Merges values into the status of an object. */
export function status(
  resource: Resource<object> | string,
  key: ObjectKey,
  status: object,
  options: { preconditions?: Preconditions } = {},
): Written {
  return patch(named("status", resource), key, { status }, { ...options, subresource: "status" });
}

/** Sets the number of replicas of an object that has the subresource `scale`. */
export function scale(resource: Resource<object> | string, key: ObjectKey, replicas: number): Written {
  return patch(named("scale", resource), key, { spec: { replicas } }, { subresource: "scale" });
}

/**
 * Deletes an object, and returns whether it existed. Its dependents are deleted in the background, unless
 * `propagation` says otherwise. Without `gracePeriodSeconds` the resource's own grace period applies.
 */
export function remove(
  resource: Resource<object> | string,
  key: ObjectKey,
  options: {
    propagation?: "background" | "foreground" | "orphan";
    gracePeriodSeconds?: number;
    preconditions?: Preconditions | undefined;
  } = {},
): boolean {
  const { propagation = "background", gracePeriodSeconds, preconditions } = options;
  if (
    gracePeriodSeconds !== undefined &&
    !(gracePeriodSeconds >= 0 && Number.isInteger(gracePeriodSeconds))
  ) {
    throw new RangeError(`gracePeriodSeconds is ${gracePeriodSeconds}; give whole seconds, 0 or more`);
  }
  const [target, required] = [targetOf("delete", resource), toPreconditions(preconditions)];
  const existed = finding(() => {
    host.delete(target, toKey(key), propagation, absent(gracePeriodSeconds), required);
    return true;
  });
  return existed ?? false;
}

export { remove as delete };

/** Returns the resource that a function of this module was given. */
function named<T extends object>(name: string, given: Resource<T> | string): Resource<T> {
  return resourceOf(given, `the argument resource of client.${name}`);
}

function targetOf(name: string, given: Resource<object> | string): GroupVersionResource {
  return toTarget(named(name, given));
}

/** Makes a write in a namespace, which the host's answer does not repeat. */
function writing(namespace: string, write: () => WitWritten): Written {
  const { name, uid, resourceVersion } = calling(write);
  return { namespace, name, uid, resourceVersion };
}

function toPreconditions({ uid, resourceVersion }: Preconditions = {}): WitPreconditions {
  return { uid: absent(uid), resourceVersion: absent(resourceVersion) } as WitPreconditions;
}

/** An empty option of the contract is null in QuickJS, although the generated types say `undefined`. */
function absent<V>(value: V | undefined): V | undefined {
  return value ?? (null as unknown as undefined);
}
