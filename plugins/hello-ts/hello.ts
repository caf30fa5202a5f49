// Logs every notification about ConfigMaps.
//
// The same plugin exists in five languages. Each uses the contract in `wit/` directly, without an SDK, and
// shows one example of each kind: declared fields, a field that it reads itself, a read of the cache, the
// configuration and the log.

/// <reference path="./.oarlock/types/handler-plugin.d.ts" />

import * as cache from "oarlock:plugin/cache@0.1.0";
import * as config from "oarlock:plugin/config@0.1.0";
import * as event from "oarlock:plugin/event@0.1.0";
import * as log from "oarlock:plugin/log@0.1.0";
import type { Added, Deleted, Synced, Updated } from "oarlock:plugin/handler@0.1.0";
import type { Description } from "oarlock:plugin/metadata@0.1.0";
import type { Entry, Error as HostError, Failure, ObjectRef } from "oarlock:plugin/types@0.1.0";

const NAME = "configmaps";

// The fields that every notification carries. The host skips updates that change none of them. Every update
// changes the resourceVersion, so the host skips none.
const FIELDS = ["/metadata/resourceVersion", "/data/greeting"];
const GREETING = 1;

// An absent field is undefined in the generated types, and null in QuickJS.
type Field = string | null | undefined;

// === the description of the plugin ===

export const metadata = {
  describe(): Description {
    const configMaps = { group: "", version: "v1", plural: "configmaps" };
    return {
      name: "hello-ts",
      version: "0.1.0",
      subscriptions: [
        {
          name: NAME,
          target: configMaps,
          namespaces: { tag: "all" },
          labelSelector: labelSelector(),
          conditions: [],
          fields: FIELDS,
          content: "full",
          resyncSeconds: 0,
          enqueue: { tag: "nothing" },
          ignoreOwnWrites: false,
        },
      ],
      reads: [{ name: NAME, target: configMaps, namespaces: { tag: "all" }, content: "full", wakes: false }],
      indices: [],
      requests: [],
      schedules: [],
      stateless: false,
    };
  },
};

function labelSelector(): string {
  const json: Field = config.get("/labelSelector");
  if (json == null) return "app=hello";
  const selector = text(json);
  if (selector === undefined) throw "labelSelector in the configuration is not a string";
  return selector;
}

// === the notifications ===

export const handler = {
  onAdd(added: Added): void {
    const notice = new Notice("add", added.subscription, added.object);
    notice.pair("initial", added.isInInitialList);
    notice.finish("new", added.object, added.fields);
  },

  onUpdate(updated: Updated): void {
    const notice = new Notice("update", updated.subscription, updated.object);
    notice.pair("old-resource-version", updated.oldResourceVersion);
    notice.textPair("old-greeting", updated.oldFields[GREETING]);
    notice.finish("new", updated.object, updated.fields);
  },

  onDelete(deleted: Deleted): void {
    const notice = new Notice("delete", deleted.subscription, deleted.object);
    notice.pair("unknown", deleted.finalStateUnknown);
    notice.finish("old", deleted.object, deleted.fields);
  },

  onSynced(synced: Synced): void {
    const notice = new Notice("synced", synced.subscription);
    notice.pair("remaining", synced.remaining);
    notice.log();
  },
};

// The pairs of the log line.
class Notice {
  readonly pairs: Entry[] = [];

  constructor(type: string, subscription: string, object?: ObjectRef) {
    this.pair("type", type);
    this.pair("subscription", subscription);
    if (object === undefined) return;
    this.pair("namespace", object.namespace);
    this.pair("name", object.name);
    this.pair("uid", object.uid);
    this.pair("resource-version", object.resourceVersion);
  }

  // Adds values from the declared fields, the event and the cache, and logs the line.
  finish(which: event.Version, object: ObjectRef, fields: Field[]): void {
    this.textPair("greeting", fields[GREETING]);
    this.textPair("created", asking(() => event.field(which, "/metadata/creationTimestamp")));
    this.pair("cached", isCached(object));
    this.log();
  }

  pair(name: string, value: string | number | boolean): void {
    this.pairs.push({ name, value: String(value) });
  }

  // Adds the string value of a field, if it has one.
  textPair(name: string, field: Field): void {
    const value = text(field);
    if (value !== undefined) this.pair(name, value);
  }

  log(): void {
    if (!isQuiet()) log.log("info", "notified", this.pairs);
  }
}

// Returns whether the cache has the object with this uid, and not a later object of the same name.
function isCached(object: ObjectRef): boolean {
  const { namespace, name } = object;
  return asking(
    () => {
      const row = cache.get(NAME, { namespace, name }, { tag: "fields", val: ["/metadata/uid"] });
      return text(row.fields[0]) === object.uid;
    },
    (error) => (error.tag === "not-found" ? false : undefined),
  );
}

// Calls the host. After an error the host delivers the notification again later, unless `instead` returns a
// value for the error.
function asking<T>(question: () => T, instead?: (error: HostError) => T | undefined): T {
  try {
    return question();
  } catch (thrown) {
    const error = (thrown as { payload?: HostError }).payload;
    if (error === undefined) throw thrown;
    const answer = instead?.(error);
    if (answer !== undefined) return answer;
    throw { tag: "retry", val: JSON.stringify(error) } satisfies Failure;
  }
}

// Returns the string value of a field, if the field has one.
function text(field: Field): string | undefined {
  if (field == null) return undefined;
  const value: unknown = JSON.parse(field);
  return typeof value === "string" ? value : undefined;
}

// Returns whether the configuration has `quiet: true`, which turns the log off.
let quiet: boolean | undefined;
function isQuiet(): boolean {
  quiet ??= config.get("/quiet") === "true";
  return quiet;
}
