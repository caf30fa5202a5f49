// Resources of Kubernetes, and the names of their objects.

import type { GroupVersionResource, Namespaces, ObjectKey as WitKey } from "oarlock:plugin/types@0.1.0";
import { object, text } from "./conversion.js";

/** What every object of Kubernetes has. */
export interface ObjectMeta {
  name?: string | undefined;
  namespace?: string | undefined;
  uid?: string | undefined;
  resourceVersion?: string | undefined;
  generateName?: string | undefined;
  generation?: number | undefined;
  creationTimestamp?: string | undefined;
  deletionTimestamp?: string | undefined;
  labels?: Record<string, string> | undefined;
  annotations?: Record<string, string> | undefined;
  finalizers?: string[] | undefined;
  ownerReferences?: OwnerReference[] | undefined;
}

/** The owner of an object. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean | undefined;
  blockOwnerDeletion?: boolean | undefined;
}

/** An object of a resource without a type of its own. */
export interface KubernetesObject {
  apiVersion?: string | undefined;
  kind?: string | undefined;
  metadata?: ObjectMeta | undefined;
  [field: string]: unknown;
}

/** The name of an object. The metadata of an object is one. */
export interface ObjectKey {
  /** Empty or absent for cluster-scoped objects. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** One version of one object. */
export interface ObjectRef {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  /** Differs between an object and a later object of the same name. */
  readonly uid: string;
  /** Opaque. Compare for equality only. */
  readonly resourceVersion: string;
}

declare const OBJECT: unique symbol;

/** A resource whose objects have the type `T`. */
export interface Resource<T extends object = KubernetesObject> {
  /** The API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** The plural, lower-case name. */
  readonly plural: string;
  /** The kind of its objects, for Events about them. */
  readonly kind?: string | undefined;
  readonly [OBJECT]?: T;
}

/**
 * Returns a resource: `resource("v1/pods")`, `resource<Deployment>("apps/v1/deployments", "Deployment")`.
 *
 * The type parameter is the type of its objects, for example from the package `kubernetes-types`. The kind is
 * needed for Events about its objects only.
 */
export function resource<T extends object = KubernetesObject>(path: string, kind?: string): Resource<T> {
  const parts = text("the argument path of resource", path, 'a text such as "v1/pods"').split("/");
  if (kind !== undefined) text("the argument kind of resource", kind, 'a text such as "Pod"');
  const [plural, version, group = ""] = parts.toReversed();
  if (parts.length > 3 || !plural || !version || parts.includes("")) {
    throw new TypeError(`${JSON.stringify(path)} is not a resource such as v1/pods or apps/v1/deployments`);
  }
  return { group, version, plural, kind };
}

/** Returns a resource that is given as such, or as its path. `what` names the argument, for the error. */
export function resourceOf<T extends object>(given: Resource<T> | string, what: string): Resource<T> {
  if (typeof given === "string") return resource<T>(given);
  if (!isResource(given)) throw new TypeError(`${what} ${wrong(given)}`);
  return given;
}

/** Returns whether a value without a checked type has the parts of a resource. */
function isResource(given: unknown): boolean {
  if (typeof given !== "object" || given === null) return false;
  const { group, version, plural } = given as Record<string, unknown>;
  return typeof group === "string" && isName(version) && isName(plural);
}

function isName(part: unknown): boolean {
  return typeof part === "string" && part !== "";
}

function wrong(given: unknown): string {
  const type =
    typeof given === "object" ? "an object without group, version and plural" : `a ${typeof given}`;
  const shown = given === undefined || given === null ? `${given}` : type;
  return `is ${shown}; give a text such as "v1/pods", or what resource("v1/pods") returns`;
}

/** Returns the path of a resource, such as `apps/v1/deployments`. */
export function pathOf({ group, version, plural }: GroupVersionResource): string {
  return group === "" ? `${version}/${plural}` : `${group}/${version}/${plural}`;
}

export function toTarget({ group, version, plural }: Resource<object>): GroupVersionResource {
  return {
    group: text("the group of a resource", group),
    version: text("the version of a resource", version),
    plural: text("the plural of a resource", plural),
  };
}

export function toKey(key: ObjectKey): WitKey {
  const { namespace, name } = object(
    "the key of an object",
    key,
    "an object with a name, such as its metadata",
  );
  if (name === undefined || name === "") throw new TypeError("the key of an object has no name");
  return {
    namespace: text("the namespace in the key of an object", namespace ?? ""),
    name: text("the name in the key of an object", name),
  };
}

export function toNamespaces(what: string, namespace: string | undefined): Namespaces {
  return namespace === undefined
    ? { tag: "all" }
    : { tag: "one", val: text(`the option namespace of ${what}`, namespace) };
}
