// Watches: what a plugin is notified of, and its handlers.

import type {
  FieldCondition,
  NamedAt,
  Subscription,
  Test,
  Enqueue as WitEnqueue,
  Scope as WitScope,
} from "oarlock:plugin/metadata@0.1.0";
import { checkChoice, present, TEXT, type Value } from "./choice.js";
import { boolean, callback, json, list, object, oneOf, pointers, text } from "./conversion.js";
import { type Duration, toSeconds } from "./duration.js";
import { type Added, type Deleted, EventFactory, type Synced, type Updated } from "./event.js";
import { checkNames } from "./names.js";
import type { Fields, FieldValues } from "./pointer.js";
import { type PartialKey, toWit } from "./queue.js";
import {
  type KubernetesObject,
  pathOf,
  type Resource,
  resourceOf,
  toNamespaces,
  toTarget,
} from "./resource.js";

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A test on the field at a JSON pointer. `null` counts as absent. Numbers and strings can be ordered. */
export type Condition = { at: string } & (
  | { exists: boolean }
  | { equals: Json }
  | { differs: Json }
  | { in: readonly Json[] }
  | { notIn: readonly Json[] }
  | { greater: number | string }
  | { less: number | string }
);

/** Where the object is that another one names: in its namespace, or in none, such as a Node. */
export type Scope = "same-namespace" | "cluster";

/**
 * The key that a change adds to the work queue, in place of a call of the watch's handlers: the object
 * itself, its controller owner, the object that a field or a label names, or always the same key. Its
 * kind is the name of the watch, except for a controller owner (the owner's kind) and `key`.
 */
export type Enqueue =
  | "itself"
  | { controllerOwner: string; group?: string; scope?: Scope }
  | { pointer: string; scope?: Scope }
  | { label: string; scope?: Scope }
  | { key: PartialKey };

/** What a watch contains, beside its resource, and what it calls. */
export interface WatchOptions<T, F extends Fields> {
  /** One namespace; without it, all that the plugin's account may read. */
  namespace?: string;
  /** A label selector of Kubernetes, such as `app=web,tier in (a,b),!legacy`. */
  labelSelector?: string;
  /** Conditions on fields, which must all hold. */
  conditions?: readonly Condition[];
  /**
   * The fields that the plugin needs, as JSON pointers by name. The events carry their values, and the
   * host skips updates that change none of them.
   */
  fields?: F;
  /** `metadata` if the plugin needs no more than that. */
  content?: "metadata" | "full";
  /** The interval at which each object is delivered again, in whole seconds. */
  resync?: Duration;
  /** Adds a key to the work queue, in place of a call of the handlers below. */
  enqueue?: Enqueue;
  /** Whether the host skips what the plugin has written itself. */
  ignoreOwnWrites?: boolean;
  /** An object exists, was created, or began to match. */
  onAdd?(event: Added<T, FieldValues<T, F>>): void;
  /** An object changed, or a resync delivers it again. */
  onUpdate?(event: Updated<T, FieldValues<T, F>>): void;
  /** An object was deleted, or ceased to match. */
  onDelete?(event: Deleted<T, FieldValues<T, F>>): void;
  /** All objects that existed when the plugin started have been handled. */
  onSynced?(event: Synced): void;
}

const OPTIONS: Record<keyof WatchOptions<unknown, Fields>, true> = {
  namespace: true,
  labelSelector: true,
  conditions: true,
  fields: true,
  content: true,
  resync: true,
  enqueue: true,
  ignoreOwnWrites: true,
  onAdd: true,
  onUpdate: true,
  onDelete: true,
  onSynced: true,
};

const HANDLERS = ["onAdd", "onUpdate", "onDelete", "onSynced"] as const;

const BOOLEAN: Value = { is: "true or false", fits: (value) => typeof value === "boolean" };
const JSON_VALUE: Value = { is: "a JSON value", fits: isJson };
const JSON_VALUES: Value = {
  is: "a list of JSON values",
  fits: (value) => Array.isArray(value) && value.every(isJson),
};
const ORDERED: Value = {
  is: "a number or a string",
  fits: (value) => typeof value === "string" || Number.isFinite(value),
};

type TestName<T = Condition> = T extends unknown ? Exclude<keyof T, "at"> : never;

const TESTS: Record<TestName, Value> = {
  exists: BOOLEAN,
  equals: JSON_VALUE,
  differs: JSON_VALUE,
  in: JSON_VALUES,
  notIn: JSON_VALUES,
  greater: ORDERED,
  less: ORDERED,
};

type TargetName<T = Enqueue> = T extends object ? Exclude<keyof T, "group" | "scope"> : never;

const TARGETS: Record<TargetName, Value> = {
  controllerOwner: TEXT,
  pointer: TEXT,
  label: TEXT,
  key: {
    is: 'a key such as { kind: "report" }',
    fits: (value) => typeof (value as Partial<PartialKey> | null)?.kind === "string",
  },
};

const CONTENTS: Record<"metadata" | "full", true> = { metadata: true, full: true };
const SCOPES: Record<Scope, true> = { "same-namespace": true, cluster: true };
const KEY: Record<keyof PartialKey, true> = { kind: true, namespace: true, name: true };

/** A watch of one resource. */
export class Watch {
  /** @internal */
  readonly handlers: WatchOptions<unknown, Fields>;
  /** @internal */
  readonly events: EventFactory;
  readonly #resource: Resource<object>;

  /** @internal */
  constructor(of: Resource<object>, options: WatchOptions<unknown, Fields>) {
    this.#resource = of;
    this.handlers = options;
    this.events = new EventFactory(options.fields ?? {});
  }

  /** @internal */
  declared(name: string): Subscription {
    const options = this.handlers;
    const what = `the watch ${name}`;
    return {
      name: text("the name of a watch", name),
      target: toTarget(this.#resource),
      namespaces: toNamespaces(what, options.namespace),
      labelSelector: text(`the option labelSelector of ${what}`, options.labelSelector ?? ""),
      conditions: (options.conditions ?? []).map((condition) => toCondition(what, condition)),
      fields: pointers("option", what, options.fields ?? {}),
      content: oneOf(`the option content of ${what}`, options.content ?? "full", ["metadata", "full"]),
      resyncSeconds: toSeconds(`the resync of ${what}`, options.resync ?? 0),
      enqueue: toEnqueue(`the enqueue of ${what}`, options.enqueue),
      ignoreOwnWrites: boolean(`the option ignoreOwnWrites of ${what}`, options.ignoreOwnWrites ?? false),
    };
  }
}

/**
 * Returns a watch of a resource: `watch("v1/pods", { fields: { phase: "/status/phase" }, onAdd(event) { …
 * } })`.
 */
export function watch<T extends object = KubernetesObject, const F extends Fields = Record<never, string>>(
  of: Resource<T> | string,
  options: WatchOptions<T, F> = {},
): Watch {
  const watched = resourceOf(of, "the resource of a watch");
  const what = `the watch of ${pathOf(watched)}`;
  checkNames(what, options, OPTIONS);
  if (options.content !== undefined) checkNames(what, { [options.content]: true }, CONTENTS, "content");
  for (const name of HANDLERS) callback(`${name} of ${what}`, options[name]);
  for (const condition of list(`the option conditions of ${what}`, options.conditions ?? [])) {
    checkCondition(what, object(`a condition of ${what}`, condition));
  }
  if (options.enqueue !== undefined) checkEnqueue(`the enqueue of ${what}`, options.enqueue);
  return new Watch(watched, options as WatchOptions<unknown, Fields>);
}

/** Throws unless a condition has a pointer and one test, with a value of its type. */
function checkCondition(watch: string, { at, ...tests }: { at: unknown }): void {
  if (typeof at !== "string") {
    throw new TypeError(`a condition of ${watch} has no JSON pointer; write at: "/spec/nodeName"`);
  }
  const noun = { one: "test", instead: "write a condition for each" };
  checkChoice(`the condition on ${at} of ${watch}`, tests, TESTS, noun);
}

/** Throws unless it is `itself`, or has one target with a value of its type, and options that exist. */
function checkEnqueue(what: string, enqueue: Enqueue): void {
  if (enqueue === "itself") return;
  if (typeof enqueue !== "object" || enqueue === null) {
    const targets = Object.keys(TARGETS).join(", ");
    throw new TypeError(`${what} is ${enqueue}; give "itself", or an object with one of ${targets}`);
  }
  checkNames(what, enqueue, { ...TARGETS, group: true, scope: true });
  const { group, scope, ...target }: { group?: unknown; scope?: unknown; key?: unknown } = enqueue;
  checkChoice(what, target, TARGETS, { one: "target", instead: "give one of them" });
  if (group !== undefined && !TEXT.fits(group)) {
    throw new TypeError(`${what} has a wrong value for the option group; give ${TEXT.is}`);
  }
  if (scope !== undefined) checkNames(what, { [`${scope}`]: true }, SCOPES, "scope");
  if (target.key !== undefined) checkNames(`the key of ${what}`, target.key as object, KEY);
}

/** Returns whether JSON has such a value. The parts of lists and objects are not looked at. */
function isJson(value: unknown): boolean {
  return ["string", "boolean", "object"].includes(typeof value) || Number.isFinite(value);
}

function toCondition(watch: string, condition: Condition): FieldCondition {
  const pointer = text(`the pointer of a condition of ${watch}`, condition.at);
  return { pointer, test: toTest(`the condition on ${pointer} of ${watch}`, present(condition)) };
}

function toTest(what: string, test: Condition): Test {
  const toText = (value: Json) => json(what, value);
  if ("exists" in test) return { tag: test.exists ? "exists" : "absent" };
  if ("equals" in test) return { tag: "equals", val: toText(test.equals) };
  if ("differs" in test) return { tag: "differs", val: toText(test.differs) };
  if ("in" in test) return { tag: "in", val: test.in.map(toText) };
  if ("notIn" in test) return { tag: "not-in", val: test.notIn.map(toText) };
  if ("greater" in test) return { tag: "greater", val: toText(test.greater) };
  return { tag: "less", val: toText(test.less) };
}

function toEnqueue(what: string, given: Enqueue | undefined): WitEnqueue {
  if (given === undefined) return { tag: "nothing" };
  if (given === "itself") return { tag: "itself" };
  const enqueue = present(given);
  if ("controllerOwner" in enqueue) {
    const { controllerOwner, group = "", scope } = enqueue;
    const kind = text(`the kind in ${what}`, controllerOwner);
    return {
      tag: "controller-owner",
      val: { group: text(`the group in ${what}`, group), kind, scope: toScope(scope) },
    };
  }
  if ("pointer" in enqueue) return { tag: "pointer", val: named(what, enqueue.pointer, enqueue.scope) };
  if ("label" in enqueue) return { tag: "label", val: named(what, enqueue.label, enqueue.scope) };
  return { tag: "key", val: toWit(`the key of ${what}`, enqueue.key) };
}

function named(what: string, at: string, scope: Scope | undefined): NamedAt {
  return { at: text(what, at), scope: toScope(scope) };
}

function toScope(scope: Scope | undefined): WitScope {
  return scope ?? "same-namespace";
}
