// The imports of a plugin, answered by a fake host.

import type { Written } from "oarlock:plugin/client@0.1.0";
import type { Description } from "oarlock:plugin/metadata@0.1.0";
import type { GroupVersionResource, Namespaces, ObjectKey, Page } from "oarlock:plugin/types@0.1.0";
import {
  InvalidError,
  LimitExceededError,
  NotDeclaredError,
  NotFoundError,
  type OarlockError,
} from "../errors.js";
import type { Imports } from "../host/fake.js";
import { fromWit } from "../queue.js";
import { type KubernetesObject, pathOf } from "../resource.js";
import { type FakeCluster, pageOf, rowOf, type StoredObject } from "./fake-cluster.js";
import {
  type LogLine,
  type QueuedKey,
  type RecordedEvent,
  type SentRequest,
  show,
  thrown,
} from "./recorded.js";
import { matches, merged, patched, textAt, valuesAt } from "./values.js";

/** What the imports read and record. */
export interface State {
  readonly cluster: FakeCluster;
  readonly config: object;
  readonly requests: SentRequest[];
  readonly events: RecordedEvent[];
  readonly logs: LogLine[];
  readonly queue: QueuedKey[];
  readonly metrics: Map<string, number>;
  /** Errors of the next calls, by the name of the function. */
  readonly errors: Map<string, OarlockError[]>;
  /** The old and the new state of the object of the notification that is being handled. */
  notification: { old?: StoredObject; new?: StoredObject };
  description: Description | undefined;
  now: Date;
  readonly started: Date;
}

/** The maximum length of the rows of a page of a live list. */
const LONGEST_PAGE = 4 << 20;

/** Returns the length of the texts of a page. */
function lengthOf({ rows }: Page): number {
  const texts = rows.flatMap(({ fields, json }) => [json, ...fields]);
  return texts.reduce((length, text) => length + (text?.length ?? 0), 0);
}

/** Returns the imports. */
export function importsOf(state: State): Imports {
  const imports: Imports = {
    cache: cache(state),
    client: client(state),
    clock: {
      now: () => {
        const ms = state.now.getTime();
        return { seconds: Math.floor(ms / 1_000), nanoseconds: (ms % 1_000) * 1_000_000 };
      },
      elapsedMs: () => state.now.getTime() - state.started.getTime(),
    },
    config: {
      get: (pointer) => textAt(state.config, pointer),
      json: () => JSON.stringify(state.config),
    },
    event: {
      field: (which, pointer) => textAt(notified(state, which), pointer),
      fields: (which, pointers) =>
        pointers.map((pointer) => textAt(notified(state, which), pointer) as string),
      json: (which) => JSON.stringify(notified(state, which)),
    },
    events: {
      emit(_target, regarding, kind, type, reason, note) {
        state.events.push({ type, reason, regarding: `${kind} ${show(regarding)}`, note });
      },
    },
    log: {
      enabled: () => true,
      log(level, message, pairs) {
        state.logs.push({
          level,
          message,
          pairs: Object.fromEntries(pairs.map(({ name, value }) => [name, value])),
        });
      },
    },
    metrics: {
      counterAdd(name, by, labels) {
        const series = seriesOf(name, labels);
        state.metrics.set(series, (state.metrics.get(series) ?? 0) + by);
      },
      gaugeSet: (name, value, labels) => void state.metrics.set(seriesOf(name, labels), value),
    },
    workQueue: {
      add: (key) => void state.queue.push(fromWit(key)),
      addAfter: (key, afterMs) => void state.queue.push({ ...fromWit(key), afterMs }),
    },
  };
  return failing(state, imports);
}

/** Wraps each function: it throws an error that the test has ordered. */
function failing(state: State, imports: Imports): Imports {
  const wrapped = Object.entries(imports).map(([place, functions]) => {
    const named = Object.entries<(...values: never[]) => unknown>(functions);
    const guarded = named.map(([name, call]) => {
      const guard = (...values: never[]) => {
        const error = state.errors.get(`${place}.${name}`)?.shift();
        if (error) throw thrown(error);
        return call(...values);
      };
      return [name, guard];
    });
    return [place, Object.fromEntries(guarded)];
  });
  return Object.fromEntries(wrapped);
}

function notified({ notification }: State, which: "old" | "new"): StoredObject {
  const object = notification[which];
  if (!object) throw thrown(new NotFoundError(`the notification has no ${which} state`));
  return object;
}

function seriesOf(name: string, labels: { name: string; value: string }[]): string {
  const pairs = labels.map(({ name, value }) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

function cache(state: State): Imports["cache"] {
  const readOf = (lister: string) => {
    const read = state.description?.reads.find(({ name }) => name === lister);
    if (!read) throw thrown(new NotDeclaredError(`the plugin declares no lister ${lister}`));
    return read;
  };
  const objectsOf = (lister: string, namespaces: Namespaces) => {
    const read = readOf(lister);
    const objects = state.cluster.all(pathOf(read.target));
    return objects.filter((object) => isIn(object, read.namespaces) && isIn(object, namespaces));
  };
  const indexOf = (index: string) => {
    const declared = state.description?.indices.find(({ name }) => name === index);
    if (!declared) throw thrown(new NotDeclaredError(`the plugin declares no index ${index}`));
    const { source, lister } = declared;
    const valuesOf = (object: StoredObject): string[] => {
      const { labels = {}, ownerReferences = [] } = object.metadata;
      if (source.tag === "owner-uid") return ownerReferences.map(({ uid }) => uid);
      const values = source.tag === "label" ? [labels[source.val]] : valuesAt(object, source.val);
      return values.filter((value) => value != null && typeof value !== "object").map(String);
    };
    return { lister, valuesOf };
  };
  return {
    get: (lister, key, projection) =>
      rowOf(state.cluster.get(pathOf(readOf(lister).target), key), projection),
    list(lister, namespaces, selector, projection, page) {
      const objects = objectsOf(lister, namespaces);
      return pageOf(
        objects.filter(({ metadata }) => matches(metadata.labels, selector)),
        projection,
        page,
      );
    },
    byIndex(index, value, namespaces, projection, page) {
      const { lister, valuesOf } = indexOf(index);
      const objects = objectsOf(lister, namespaces);
      return pageOf(
        objects.filter((object) => valuesOf(object).includes(value)),
        projection,
        page,
      );
    },
    indexValues(index) {
      const { lister, valuesOf } = indexOf(index);
      return [...new Set(objectsOf(lister, { tag: "all" }).flatMap(valuesOf))].sort();
    },
    hasSynced: (lister) => readOf(lister) !== undefined,
    waitUntilSeen: (lister) => void readOf(lister),
  };
}

function client(state: State): Imports["client"] {
  const { cluster } = state;
  const sent = (
    verb: SentRequest["verb"],
    target: GroupVersionResource,
    key: { namespace: string; name?: string },
    subresource: string,
    body: unknown,
    write: (path: string) => StoredObject,
  ): Written => {
    const path = pathOf(target);
    const shown = body === undefined ? {} : { body };
    const request = { verb, resource: subresource ? `${path}/${subresource}` : path, ...shown };
    try {
      const { metadata } = write(path);
      const { name, uid, resourceVersion } = metadata;
      state.requests.push({ ...request, object: show({ ...key, name }) });
      return { name, uid, resourceVersion };
    } catch (thrown) {
      const error = (thrown as { payload?: { tag: string } }).payload?.tag;
      if (error) state.requests.push({ ...request, object: show(key), error });
      throw thrown;
    }
  };
  const replaced = (path: string, key: ObjectKey, object: unknown) => {
    const { metadata } = cluster.get(path, key);
    return cluster.put(path, merged(object, { metadata: { ...key, uid: metadata.uid } }) as KubernetesObject);
  };
  return {
    get: (target, key) => JSON.stringify(cluster.get(pathOf(target), key)),
    list(target, namespaces, labelSelector, fieldSelector, projection, page) {
      const isChosen = fieldSelectorOf(fieldSelector);
      const objects = cluster
        .all(pathOf(target))
        .filter((object) => isIn(object, namespaces) && isChosen(object));
      const found = pageOf(
        objects.filter(({ metadata }) => matches(metadata.labels, labelSelector)),
        projection,
        page,
      );
      if (lengthOf(found) > LONGEST_PAGE) {
        throw thrown(new LimitExceededError(`the rows have more than ${LONGEST_PAGE} bytes`));
      }
      return found;
    },
    create(target, namespace, json) {
      const object = JSON.parse(json) as KubernetesObject;
      const name = object.metadata?.name ?? "";
      return sent("create", target, { namespace, name }, "", object, (path) =>
        cluster.create(path, namespace, object),
      );
    },
    apply(target, key, subresource, json, _force, required) {
      const object = JSON.parse(json) as KubernetesObject;
      return sent("apply", target, key, subresource, object, (path) => {
        const isNew = required.uid == null && !cluster.find(path, key);
        if (isNew) return cluster.create(path, key.namespace, object);
        return replaced(path, key, merged(cluster.get(path, key, required), object));
      });
    },
    patch(target, key, subresource, kind, json, required) {
      const patch: unknown = JSON.parse(json);
      return sent("patch", target, key, subresource, patch, (path) => {
        const object = cluster.get(path, key, required);
        if (kind === "strategic-merge-patch") {
          throw thrown(new InvalidError("the fake host does not know strategic merge patches"));
        }
        return replaced(path, key, kind === "json-patch" ? patched(object, patch) : merged(object, patch));
      });
    },
    replace(target, key, subresource, json) {
      const object = JSON.parse(json) as KubernetesObject;
      return sent("replace", target, key, subresource, object, (path) => {
        cluster.get(path, key, { resourceVersion: object.metadata?.resourceVersion });
        return replaced(path, key, object);
      });
    },
    delete(target, key, _propagation, _gracePeriodSeconds, required) {
      sent("delete", target, key, "", undefined, (path) => cluster.delete(path, key, required));
    },
  };
}

function isIn(object: StoredObject, namespaces: Namespaces): boolean {
  return namespaces.tag === "all" || object.metadata.namespace === namespaces.val;
}

/** Returns the test for a field selector, of which every resource knows these two fields. */
function fieldSelectorOf(selector: string): (object: StoredObject) => boolean {
  const terms = selector.split(",").filter((term) => term !== "");
  const tests = terms.map((term) => {
    const [, field, operator, value] = /^metadata\.(name|namespace)(==|=|!=)(.*)$/.exec(term) ?? [];
    if (!field) throw thrown(new InvalidError(`the fake host does not know the field selector ${term}`));
    const of = field as "name" | "namespace";
    return ({ metadata }: StoredObject) => (metadata[of] === value) === (operator !== "!=");
  });
  return (object) => tests.every((test) => test(object));
}
