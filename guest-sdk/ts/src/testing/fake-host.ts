// A host in memory that calls a plugin.

import type * as handlerExports from "oarlock:plugin/handler@0.1.0";
import type * as metadataExports from "oarlock:plugin/metadata@0.1.0";
import type { Subscription } from "oarlock:plugin/metadata@0.1.0";
import type * as reconcilerExports from "oarlock:plugin/reconciler@0.1.0";
import type { Failure } from "oarlock:plugin/types@0.1.0";
import type { Writable } from "../client.js";
import { type Duration, toMs } from "../duration.js";
import type { OarlockError } from "../errors.js";
import { causes, Retry, RetryAfter, Terminal } from "../failure.js";
import { use } from "../host/fake.js";
import { type PartialKey, toWit } from "../queue.js";
import {
  type KubernetesObject,
  type ObjectKey,
  pathOf,
  type Resource,
  resourceOf,
  toKey,
} from "../resource.js";
import { FakeCluster, rowOf, type StoredObject } from "./fake-cluster.js";
import { importsOf, type State } from "./imports.js";
import type { LogLine, QueuedKey, RecordedEvent, SentRequest } from "./recorded.js";
import { textAt } from "./values.js";

/** The exports of a plugin's main module: `import * as plugin from "../plugin.js"`. */
export interface TestedPlugin {
  readonly metadata: object;
  readonly handler?: object;
  readonly reconciler?: object;
}

/** The surroundings of the plugin. */
export interface FakeHostOptions {
  /** The value of `config` in the plugin's file. */
  config?: object;
  /** The time, which stands still except for `advance`. */
  now?: string | Date;
}

/** A resource, or its path such as `v1/pods`. */
type Target = Resource<object> | string;

let instances = 0;

/**
 * A host with one cluster, in memory. It calls the plugin when the test says so, and only then: a write
 * of the plugin changes the cluster, and calls no handler.
 *
 * A call that fails throws the `Retry`, `RetryAfter` or `Terminal` that the host acts on; `cause` has any
 * other exception behind it.
 */
export class FakeHost {
  readonly #plugin: TestedPlugin;
  readonly #state: State;
  readonly #instance: number;

  constructor(plugin: TestedPlugin, { config = {}, now = "2026-01-01T00:00:00Z" }: FakeHostOptions = {}) {
    instances += 1;
    this.#instance = instances;
    this.#plugin = plugin;
    const started = new Date(now);
    const state: State = {
      cluster: new FakeCluster(() => state.now),
      config,
      requests: [],
      events: [],
      logs: [],
      queue: [],
      metrics: new Map(),
      errors: new Map(),
      notification: {},
      description: undefined,
      now: started,
      started,
    };
    this.#state = state;
    use(importsOf(state), this.#instance);
    try {
      state.description = (plugin.metadata as typeof metadataExports).describe();
    } catch (thrown) {
      throw new Error(`the host does not load the plugin: ${thrown}`, { cause: thrown });
    }
  }

  /** The writes of the plugin, in order. */
  get requests(): readonly SentRequest[] {
    return this.#state.requests;
  }

  /** The Events that the plugin recorded. */
  get events(): readonly RecordedEvent[] {
    return this.#state.events;
  }

  /** The lines that the plugin logged. */
  get logs(): readonly LogLine[] {
    return this.#state.logs;
  }

  /** The keys that the plugin added to its work queue. */
  get queue(): readonly QueuedKey[] {
    return this.#state.queue;
  }

  /** The values of the plugin's metrics, by series: `name` or `name{label="value"}`. */
  get metrics(): ReadonlyMap<string, number> {
    return this.#state.metrics;
  }

  /** The time. */
  get now(): Date {
    return this.#state.now;
  }

  /** Moves the clock. */
  advance(duration: Duration): void {
    this.#state.now = new Date(
      this.#state.now.getTime() + toMs("the argument of advance", duration, Number.MAX_SAFE_INTEGER),
    );
  }

  /** Creates or replaces an object in the cluster, without a notification. */
  put<T extends Writable>(target: Target, object: T): StoredObject {
    return this.#state.cluster.put(toPath(target), object);
  }

  /** Deletes an object from the cluster, without a notification. */
  remove(target: Target, key: ObjectKey): void {
    this.#state.cluster.delete(toPath(target), toKey(key), {});
  }

  /** Returns an object of the cluster. */
  get<T extends object = KubernetesObject>(target: Resource<T> | string, key: ObjectKey): T | undefined {
    return this.#state.cluster.find(toPath(target as Target), toKey(key)) as T | undefined;
  }

  /**
   * Lets the next call of a function of the contract fail: `host.fail("client.create", new
   * ConflictError("…"))`.
   */
  fail(name: string, error: OarlockError): void {
    this.#state.errors.set(name, [...(this.#state.errors.get(name) ?? []), error]);
  }

  /** Puts an object into the cluster and notifies a watch that it was added. */
  added<T extends Writable>(
    watch: string,
    object: T,
    { isInitial = false }: { isInitial?: boolean } = {},
  ): void {
    const subscription = this.#subscription(watch);
    const state = this.put(pathOf(subscription.target), object);
    const notification = { ...declared(subscription, state), isInInitialList: isInitial };
    this.#notify({ new: state }, (handler) => handler.onAdd(notification));
  }

  /** Replaces an object in the cluster and notifies a watch of the change. */
  updated<T extends Writable>(watch: string, object: T): void {
    const subscription = this.#subscription(watch);
    const path = pathOf(subscription.target);
    const old = this.#state.cluster.get(path, toKey(object.metadata ?? {}));
    const state = this.put(path, object);
    const notification = {
      ...declared(subscription, state),
      oldResourceVersion: old.metadata.resourceVersion,
      oldFields: declared(subscription, old).fields,
    };
    this.#notify({ old, new: state }, (handler) => handler.onUpdate(notification));
  }

  /** Deletes an object from the cluster and notifies a watch. */
  deleted(watch: string, key: ObjectKey): void {
    const subscription = this.#subscription(watch);
    const path = pathOf(subscription.target);
    const old = this.#state.cluster.get(path, toKey(key));
    this.remove(path, key);
    const notification = { ...declared(subscription, old), finalStateUnknown: false };
    this.#notify({ old }, (handler) => handler.onDelete(notification));
  }

  /** Notifies a watch that its initial objects have been handled. */
  synced(watch: string, remaining = 0): void {
    this.#notify({}, (handler) => handler.onSynced({ subscription: watch, remaining }));
  }

  /** Calls `reconcile`, and returns the milliseconds after which it wants to be called again. */
  reconcile(key: PartialKey): number | undefined {
    const { reconciler } = this.#plugin;
    if (!reconciler) throw new Error("the plugin exports no reconciler");
    const outcome = this.#call(() =>
      (reconciler as typeof reconcilerExports).reconcile(toWit("the key that the test gives", key)),
    );
    return outcome.tag === "requeue-after" ? outcome.val : undefined;
  }

  #subscription(watch: string): Subscription {
    const found = this.#state.description?.subscriptions.find(({ name }) => name === watch);
    if (!found) throw new Error(`the plugin has no watch ${watch}`);
    return found;
  }

  #notify(states: State["notification"], notify: (handler: typeof handlerExports) => void): void {
    const { handler } = this.#plugin;
    if (!handler) throw new Error("the plugin exports no handler");
    this.#state.notification = states;
    try {
      this.#call(() => notify(handler as typeof handlerExports));
    } finally {
      this.#state.notification = {};
    }
  }

  #call<R>(call: () => R): R {
    use(importsOf(this.#state), this.#instance);
    try {
      return call();
    } catch (thrown) {
      throw exceptionOf(thrown as Failure);
    }
  }
}

/** Returns the object and the declared fields of a notification. */
function declared({ name, fields }: Subscription, state: StoredObject) {
  const texts = fields.map((pointer) => textAt(state, pointer));
  return { subscription: name, object: rowOf(state, { tag: "keys" }).object, fields: texts };
}

function exceptionOf(failure: Failure): unknown {
  const cause = causes.get(failure);
  // A RetryAfter whose time is wrong becomes another failure.
  const isRetry = cause instanceof Retry && cause instanceof RetryAfter === (failure.tag === "retry-after");
  if (isRetry || cause instanceof Terminal) return cause;
  if (failure.tag === "terminal") return new Terminal(failure.val, { cause });
  if (failure.tag === "retry") return new Retry(failure.val, { cause });
  return new RetryAfter(failure.val.afterMs, failure.val.message, { cause });
}

function toPath(target: Target): string {
  return pathOf(resourceOf(target, "the resource that the test gives"));
}
