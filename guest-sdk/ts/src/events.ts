// Kubernetes Events about an object, as `kubectl events` and `kubectl describe` show them.

import type { EventType } from "oarlock:plugin/events@0.1.0";
import { events as host } from "#host";
import { calling } from "./calling.js";
import { message, object, text } from "./conversion.js";
import { type ObjectMeta, pathOf, type Resource, resourceOf, toTarget } from "./resource.js";

/** The object that an Event is about: its metadata, a row, or the object of a notification. */
export type Regarding = Pick<ObjectMeta, "namespace" | "name" | "uid" | "resourceVersion">;

/**
 * Records an Event of the type Normal. Returns without waiting for the API server. `reason` is one
 * CamelCase word. The resource must have a kind.
 */
export function normal(
  resource: Resource<object>,
  regarding: Readonly<Regarding>,
  reason: string,
  note: string,
): void {
  emit("normal", resource, regarding, reason, note);
}

/** Records an Event of the type Warning, as {@link normal} does. */
export function warning(
  resource: Resource<object>,
  regarding: Readonly<Regarding>,
  reason: string,
  note: string,
): void {
  emit("warning", resource, regarding, reason, note);
}

function emit(
  type: EventType,
  resource: Resource<object>,
  regarding: Regarding,
  reason: string,
  note: string,
): void {
  const of = `events.${type}`;
  const about = resourceOf(resource, `the argument resource of ${of}`);
  const { kind } = about;
  if (!kind) {
    const path = pathOf(about);
    throw new TypeError(`an Event needs the kind of ${path}: make it with resource("${path}", "Kind")`);
  }
  const what = `the argument regarding of ${of}`;
  const { namespace = "", name = "", uid = "", resourceVersion = "" } = object(what, regarding);
  const ref = {
    namespace: text(`the namespace of ${what}`, namespace),
    name: text(`the name of ${what}`, name),
    uid: text(`the uid of ${what}`, uid),
    resourceVersion: text(`the resourceVersion of ${what}`, resourceVersion),
  };
  const [target, named] = [toTarget(about), text(`the kind of ${pathOf(about)}`, kind)];
  const [word, shown] = [
    text(`the argument reason of ${of}`, reason),
    message(`the argument note of ${of}`, note),
  ];
  calling(() => host.emit(target, ref, named, type, word, shown));
}
