// What a handler gets: the notification of one change, whose object is read field by field.

import type { Version } from "oarlock:plugin/event@0.1.0";
import type {
  Added as WitAdded,
  Deleted as WitDeleted,
  Updated as WitUpdated,
} from "oarlock:plugin/handler@0.1.0";
import type { ObjectRef as WitRef } from "oarlock:plugin/types@0.1.0";
import { event as host } from "#host";
import { calling } from "./calling.js";
import { pointers, text } from "./conversion.js";
import { type DeclaredFields, declaredFields } from "./declared-fields.js";
import type { Fields, FieldValue, FieldValues } from "./pointer.js";
import type { ObjectRef } from "./resource.js";
import { parseField } from "./rows.js";

/** An object exists, was created, or began to match the watch. */
export interface Added<T, V> {
  readonly watch: string;
  readonly object: EventObject<T>;
  /** The declared fields, which are parsed when they are read. */
  readonly fields: V;
  /** Whether the object existed before, rather than being created now. */
  readonly isInitial: boolean;
}

/** An object changed, or a resync delivers it again. */
export interface Updated<T, V> {
  readonly watch: string;
  readonly object: EventObject<T>;
  readonly fields: V;
  /** The last state that the plugin received. */
  readonly old: { readonly object: EventObject<T>; readonly fields: V };
  /** Whether nothing changed: a resync. */
  readonly isResync: boolean;
}

/** An object was deleted, or ceased to match the watch. */
export interface Deleted<T, V> {
  readonly watch: string;
  /** The last known state. */
  readonly object: EventObject<T>;
  readonly fields: V;
  /** Whether the host missed the delete, so that the last known state may be stale. */
  readonly isStateUnknown: boolean;
}

/** All objects that existed when the plugin started have been handled. */
export interface Synced {
  readonly watch: string;
  /** The number of the plugin's watches that have not synced yet. */
  readonly remaining: number;
}

/** The number of the notification that is being handled; 0 between calls. */
let current = 0;
let last = 0;

/** Calls a handler, whose event is valid until it returns. */
export function during<R>(handle: () => R): R {
  last += 1;
  current = last;
  try {
    return handle();
  } finally {
    current = 0;
  }
}

/** A state of the object of a notification. Nothing is read before it is asked for. */
export class EventObject<T> implements ObjectRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly #version: Version;
  readonly #call = current;
  #parsed: T | undefined;

  /** @internal */
  constructor(ref: WitRef, version: Version) {
    this.namespace = ref.namespace;
    this.name = ref.name;
    this.uid = ref.uid;
    this.resourceVersion = ref.resourceVersion;
    this.#version = version;
  }

  /**
   * Returns the value at a JSON pointer; `undefined` if the object has no such field. Parses this field
   * only.
   */
  field<const P extends string>(pointer: P): FieldValue<T, P> | undefined {
    return parseField(this.#text(pointer)) as FieldValue<T, P> | undefined;
  }

  /** Returns the values of several fields, with one call to the host. */
  fields<const F extends Fields>(fields: F): FieldValues<T, F> {
    this.#check();
    const wanted = pointers("argument", "an object", fields);
    const texts = calling(() => host.fields(this.#version, wanted));
    const names = Object.keys(fields);
    return Object.fromEntries(names.map((name, n) => [name, parseField(texts[n])])) as FieldValues<T, F>;
  }

  /** Returns the whole object as JSON text. */
  json(): string {
    this.#check();
    return calling(() => host.json(this.#version));
  }

  /** Returns the whole object, which is parsed once. */
  parse(): T {
    this.#parsed ??= JSON.parse(this.json()) as T;
    return this.#parsed;
  }

  #text(pointer: string): string | null | undefined {
    this.#check();
    const at = text("the argument pointer of field", pointer, 'a JSON pointer such as "/status/phase"');
    return calling(() => host.field(this.#version, at));
  }

  #check(): void {
    if (this.#call === current) return;
    throw new Error(
      `the notification about ${this.name} has been handled: read its fields before the handler returns`,
    );
  }
}

type Values = FieldValues<unknown, Fields>;

/** Makes events with the declared fields of one watch. */
export class EventFactory {
  readonly #values: DeclaredFields;

  constructor(fields: Fields) {
    this.#values = declaredFields(fields);
  }

  added({ subscription, object, fields, isInInitialList }: WitAdded): Added<unknown, Values> {
    const state = new EventObject(object, "new");
    const values = new this.#values(fields, state);
    return { watch: subscription, object: state, fields: values, isInitial: isInInitialList };
  }

  updated(event: WitUpdated): Updated<unknown, Values> {
    const { subscription, object, oldResourceVersion, oldUid, fields, oldFields } = event;
    const isResync = oldResourceVersion === object.resourceVersion;
    const before = { ...object, resourceVersion: oldResourceVersion, uid: oldUid ?? object.uid };
    const [state, old] = [new EventObject(object, "new"), new EventObject(before, "old")];
    const values = new this.#values(fields, state);
    const oldValues = new this.#values(oldFields, old);
    return {
      watch: subscription,
      object: state,
      fields: values,
      old: { object: old, fields: oldValues },
      isResync,
    };
  }

  deleted({ subscription, object, fields, finalStateUnknown }: WitDeleted): Deleted<unknown, Values> {
    const state = new EventObject(object, "old");
    const values = new this.#values(fields, state);
    return { watch: subscription, object: state, fields: values, isStateUnknown: finalStateUnknown };
  }
}
