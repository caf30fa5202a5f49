// Requests to the API server, made as the plugin's ServiceAccount.

import type { Preconditions as WitPreconditions, Written as WitWritten } from "oarlock:plugin/client@0.1.0";
import type { GroupVersionResource, Page, PageRequest } from "oarlock:plugin/types@0.1.0";
import { client as host } from "#host";
import { calling, finding } from "./calling.js";
import { boolean, json, list as listOf, object, oneOf, text, u32 } from "./conversion.js";
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
import { allPages, type ListOptions, limitOf, projectionOf, type Rows } from "./rows.js";

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

const TYPES: readonly PatchType[] = ["merge", "json", "strategic"];
const PROPAGATIONS = ["background", "foreground", "orphan"] as const;
const FORMATS = { merge: "merge-patch", json: "json-patch", strategic: "strategic-merge-patch" } as const;

/** Returns the current object, or its subresource; `undefined` if it does not exist. */
export function get<T extends object = KubernetesObject>(
  resource: Resource<T> | string,
  key: ObjectKey,
  options: { subresource?: string } = {},
): T | undefined {
  const { subresource } = optionsOf("get", options);
  const [target, named, of] = [targetOf("get", resource), toKey(key), toSubresource("get", subresource)];
  const found = finding(() => host.get(target, named, of));
  return found === undefined ? undefined : (JSON.parse(found) as T);
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
  const what = "client.list";
  const { namespace, labelSelector = "", fieldSelector = "", fields } = optionsOf("list", options);
  const target = targetOf("list", resource);
  const [namespaces, projection] = [toNamespaces(what, namespace), projectionOf(what, fields)];
  const labels = text(`the option labelSelector of ${what}`, labelSelector);
  const values = text(`the option fieldSelector of ${what}`, fieldSelector);
  let limit = limitOf(what, options) || ROWS_OF_A_PAGE;
  const fetch = ({ continueToken }: PageRequest): Page => {
    for (;;) {
      try {
        const page = { limit, continueToken };
        return calling(() => host.list(target, namespaces, labels, values, projection, page));
      } catch (error) {
        if (!(error instanceof LimitExceededError) || limit <= 1) throw error;
        // The objects of the page are too large together.
        limit = Math.floor(limit / 2);
      }
    }
  };
  return allPages(fetch, fields, limit);
}

/** Creates an object. `metadata.generateName` works as in Kubernetes. */
export function create<T extends Writable>(resource: Resource<T> | string, object: T): Written {
  const target = targetOf("create", resource);
  const [{ namespace }, body] = written("create", object);
  const named = text("the metadata.namespace of the argument object of client.create", namespace ?? "");
  return writing(named, () => host.create(target, named, body));
}

/**
 * Applies an object, server-side, with the plugin's name as field manager. With `force` the plugin takes
 * over the fields of other managers, which are a `ConflictError` without it.
 */
export function apply<T extends Writable>(
  resource: Resource<T> | string,
  object: Partial<T> & Writable,
  options: WriteOptions & { force?: boolean } = {},
): Written {
  const { subresource, force = false, preconditions } = optionsOf("apply", options);
  const target = targetOf("apply", resource);
  const [metadata, body] = written("apply", object);
  const [key, of] = [toKey(metadata), toSubresource("apply", subresource)];
  const isForced = boolean("the option force of client.apply", force);
  const required = toPreconditions("apply", preconditions);
  return writing(key.namespace, () => host.apply(target, key, of, body, isForced, required));
}

/** Changes an object, by a merge patch if `type` does not say another format. */
export function patch(
  resource: Resource<object> | string,
  key: ObjectKey,
  patch: object,
  options: WriteOptions & { type?: PatchType } = {},
): Written {
  return patching("patch", resource, key, patch, options);
}

/** Replaces an object by a changed copy of what `get` or `list` of this client has returned. */
export function replace<T extends Writable>(
  resource: Resource<T> | string,
  object: T,
  options: { subresource?: string } = {},
): Written {
  const { subresource } = optionsOf("replace", options);
  const target = targetOf("replace", resource);
  const [metadata, body] = written("replace", object);
  const [key, of] = [toKey(metadata), toSubresource("replace", subresource)];
  return writing(key.namespace, () => host.replace(target, key, of, body));
}

/** Merges values into the status of an object. */
export function status(
  resource: Resource<object> | string,
  key: ObjectKey,
  status: object,
  options: { preconditions?: Preconditions } = {},
): Written {
  const given = object("the argument status of client.status", status);
  const { preconditions } = optionsOf("status", options);
  return patching("status", resource, key, { status: given }, { subresource: "status", preconditions });
}

/** Sets the number of replicas of an object that has the subresource `scale`. */
export function scale(resource: Resource<object> | string, key: ObjectKey, replicas: number): Written {
  const given = u32("the argument replicas of client.scale", replicas);
  return patching("scale", resource, key, { spec: { replicas: given } }, { subresource: "scale" });
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
  const { propagation = "background", gracePeriodSeconds, preconditions } = optionsOf("delete", options);
  const [target, named] = [targetOf("delete", resource), toKey(key)];
  const dependents = oneOf("the option propagation of client.delete", propagation, PROPAGATIONS);
  const grace = optional("the option gracePeriodSeconds of client.delete", gracePeriodSeconds, u32);
  const required = toPreconditions("delete", preconditions);
  const existed = finding(() => {
    host.delete(target, named, dependents, grace, required);
    return true;
  });
  return existed ?? false;
}

export { remove as delete };

/** Sends a patch for a function of this module. */
function patching(
  name: string,
  resource: Resource<object> | string,
  key: ObjectKey,
  patch: object,
  options: WriteOptions & { type?: PatchType },
): Written {
  const { subresource, type = "merge", preconditions } = optionsOf(name, options);
  const [target, named, of] = [targetOf(name, resource), toKey(key), toSubresource(name, subresource)];
  const format = FORMATS[oneOf("the option type of client.patch", type, TYPES)];
  const what = `the argument patch of client.${name}`;
  const wanted = "a list of operations";
  const body = json(what, format === "json-patch" ? listOf(what, patch as [], wanted) : object(what, patch));
  const required = toPreconditions(name, preconditions);
  return writing(named.namespace, () => host.patch(target, named, of, format, body, required));
}

/** Returns the target for the resource that a function of this module was given. */
function targetOf(name: string, given: Resource<object> | string): GroupVersionResource {
  return toTarget(resourceOf(given, `the argument resource of client.${name}`));
}

function optionsOf<Options extends object>(name: string, given: Options): Options {
  return object(`the argument options of client.${name}`, given);
}

function toSubresource(name: string, given = ""): string {
  return text(`the option subresource of client.${name}`, given);
}

/** Returns the metadata and the text of an object to write. */
function written(name: string, given: Writable): [ObjectMeta, string] {
  const what = `the argument object of client.${name}`;
  const { metadata = {} } = object(what, given);
  return [object(`the metadata of ${what}`, metadata), json(what, given)];
}

/** Makes a write in a namespace, which the host's answer does not repeat. */
function writing(namespace: string, write: () => WitWritten): Written {
  const { name, uid, resourceVersion } = calling(write);
  return { namespace, name, uid, resourceVersion };
}

function toPreconditions(name: string, given: Preconditions = {}): WitPreconditions {
  const what = `the option preconditions of client.${name}`;
  const { uid, resourceVersion } = object(what, given);
  return {
    uid: optional(`the uid in ${what}`, uid, text),
    resourceVersion: optional(`the resourceVersion in ${what}`, resourceVersion, text),
  } as WitPreconditions;
}

/**
 * Converts what is given; `null` is absent, as in JSON. An empty option of the contract is null in QuickJS,
 * although the generated types say `undefined`.
 */
function optional<V>(
  what: string,
  given: V | null | undefined,
  convert: (what: string, given: V) => V,
): V | undefined {
  return given == null ? (null as unknown as undefined) : convert(what, given);
}
