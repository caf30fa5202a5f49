import assert from "node:assert/strict";
import test from "node:test";
import type * as metadataExports from "oarlock:plugin/metadata@0.1.0";
import {
  annotation,
  client,
  config,
  events,
  label,
  lister,
  log,
  metrics,
  parseDuration,
  plugin,
  pointer,
  queue,
  Retry,
  RetryAfter,
  requeueAfter,
  resource,
  Terminal,
  ThrottledError,
  watch,
} from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import { projectionOf } from "../dist/rows.js";

const key = { namespace: "home", name: "a" };
const HALF = "x\ud800";

/** The functions of the SDK without their types, as authors in JavaScript see them. */
// biome-ignore lint/suspicious/noExplicitAny: the compiler must not see what is wrong in this file.
type Untyped = any;
const js = { client, config, events, log, metrics, queue } as Untyped;
const configMaps: Untyped = resource("v1/configmaps", "ConfigMap");
const cached: Untyped = lister("v1/configmaps", { indices: { color: { pointer: "/data/color" } } });

/** Runs a body as the `reconcile` of a plugin. Its result is what `reconcile` returns. */
function inPlugin(body: (host: FakeHost) => unknown, options?: { config: object }): FakeHost {
  const reconcile = () => body(host) as undefined;
  const host: FakeHost = new FakeHost(
    plugin({ name: "a", version: "1", listers: [cached], reconcile }),
    options,
  );
  host.put(configMaps, { metadata: key, data: { color: "red" } } as object);
  host.reconcile({ kind: "any" });
  return host;
}

function raise(thrown: unknown): never {
  throw thrown;
}

/** Returns the exception of a call as text. */
function thrownBy(call: () => unknown): string {
  try {
    call();
  } catch (thrown) {
    return String(thrown);
  }
  return "nothing";
}

const text = "give a text";
const whole = "give a whole number, 0 to 2147483647";
const number = "give a number";
const fields = 'give an object such as { phase: "/status/phase" }';
const at = 'give a JSON pointer such as "/status/phase"';

/** Calls of the SDK with a wrong value, and what their exceptions say. */
const WRONG: [() => unknown, string][] = [
  [() => js.client.get(configMaps), "the key of an object is undefined; give an object with a name, such as"],
  [() => js.client.get(configMaps, { name: 5 }), `the name in the key of an object is the number 5; ${text}`],
  [() => js.client.get(configMaps, { namespace: {}, name: "a" }), `the namespace in the key of an object is`],
  [
    () => js.client.get(configMaps, { name: HALF }),
    'the name in the key of an object is "x\\ud800"; give a text without half a surrogate pair',
  ],
  [() => js.client.get(configMaps, key, "status"), 'the argument options of client.get is "status"; give an'],
  [
    () => js.client.get(configMaps, key, { subresource: 5 }),
    `the option subresource of client.get is the number 5; ${text}`,
  ],
  [
    () => js.client.get({ group: HALF, version: "v1", plural: "pods" }, key),
    'the group of a resource is "x\\ud800"; ',
  ],
  [
    () => js.client.list(configMaps, { namespace: 1 }),
    `the option namespace of client.list is the number 1; ${text}`,
  ],
  [
    () => js.client.list(configMaps, { labelSelector: null }),
    `the option labelSelector of client.list is null; ${text}`,
  ],
  [
    () => js.client.list(configMaps, { fieldSelector: [] }),
    "the option fieldSelector of client.list is a list;",
  ],
  [
    () => js.client.list(configMaps, { pageSize: "5" }),
    `the option pageSize of client.list is "5"; ${number}`,
  ],
  [() => js.client.list(configMaps, { pageSize: -1 }), `the option pageSize of client.list is -1; ${whole}`],
  [() => js.client.list(configMaps, { fields: "/a" }), `the option fields of client.list is "/a"; ${fields}`],
  [() => js.client.create(configMaps), "the argument object of client.create is undefined; give an object"],
  [
    () => js.client.create(configMaps, { metadata: { namespace: 5 } }),
    "the metadata.namespace of the argument object of client.create is the number 5; give a text",
  ],
  [
    () => js.client.create(configMaps, { metadata: "a" }),
    'the metadata of the argument object of client.create is "a"; give an object',
  ],
  [() => js.client.apply(configMaps, null), "the argument object of client.apply is null; give an object"],
  [
    () => js.client.apply(configMaps, { metadata: key }, { force: "no" }),
    'the option force of client.apply is "no"; give true or false',
  ],
  [() => js.client.patch(configMaps, key), "the argument patch of client.patch is undefined; give an object"],
  [
    () => js.client.patch(configMaps, key, "{}"),
    'the argument patch of client.patch is "{}"; give an object',
  ],
  [
    () => js.client.patch(configMaps, key, {}, { type: "json" }),
    "the argument patch of client.patch is an object; give a list of operations",
  ],
  [
    () => js.client.patch(configMaps, key, {}, { type: "smart" }),
    'the option type of client.patch is "smart"; give one of merge, json, strategic',
  ],
  [
    () => js.client.patch(configMaps, key, {}, { preconditions: { uid: 5 } }),
    `the uid in the option preconditions of client.patch is the number 5; ${text}`,
  ],
  [
    () => js.client.patch(configMaps, key, { data: { a: HALF } }),
    'the member a in the argument patch of client.patch is "x\\ud800"; give a text without half a surrogate pair',
  ],
  [
    () => js.client.patch(configMaps, key, { data: { [HALF]: "" } }),
    'a name in the argument patch of client.patch is "x\\ud800"; ',
  ],
  [
    () => js.client.patch(configMaps, key, { spec: { limit: Number.NaN } }),
    "the member limit in the argument patch of client.patch is NaN, which JSON does not have; give a finite",
  ],
  [
    () => js.client.patch(configMaps, key, { toJSON() {} }),
    "the argument patch of client.patch is an object; give a JSON value",
  ],
  [
    () => js.client.replace(configMaps, { metadata: key }, { subresource: {} }),
    "the option subresource of client.replace is an object; give a text",
  ],
  [
    () => js.client.status(configMaps, key),
    "the argument status of client.status is undefined; give an object",
  ],
  [() => js.client.scale(configMaps, key, "3"), `the argument replicas of client.scale is "3"; ${number}`],
  [() => js.client.scale(configMaps, key, 0.5), `the argument replicas of client.scale is 0.5; ${whole}`],
  [
    () => js.client.delete(configMaps, key, { propagation: "later" }),
    'the option propagation of client.delete is "later"; give one of background, foreground, orphan',
  ],
  [
    () => js.client.delete(configMaps, key, { gracePeriodSeconds: -5 }),
    `the option gracePeriodSeconds of client.delete is -5; ${whole}`,
  ],
  [
    () => js.client.delete(configMaps, key, { gracePeriodSeconds: 2 ** 40 }),
    `the option gracePeriodSeconds of client.delete is 1099511627776; ${whole}`,
  ],
  [
    () => cached.get(7),
    "the key of an object is the number 7; give an object with a name, such as its metadata",
  ],
  [() => cached.get(key, { fields: ["/a"] }), `the option fields of get is a list; ${fields}`],
  [() => cached.get(key, { fields: { a: undefined } }), `the field a is undefined; ${at}`],
  [() => cached.list({ pageSize: Number.NaN }), `the option pageSize of list is NaN; ${whole}`],
  [() => cached.list({ namespace: null }), `the option namespace of list is null; ${text}`],
  [() => cached.list("home"), 'the argument options of list is "home"; give an object'],
  [() => cached.byIndex("color", 5), `the argument value of byIndex is the number 5; ${text}`],
  [() => cached.byIndex(undefined, "a"), `the name of an index is undefined; ${text}`],
  [() => cached.indexValues(Symbol("a")), `the name of an index is a symbol; ${text}`],
  [() => cached.waitUntilSeen("5"), 'the argument written of waitUntilSeen is "5"; give an object'],
  [() => cached.waitUntilSeen({}), `the resourceVersion of what was written is undefined; ${text}`],
  [
    () => cached.waitUntilSeen({ resourceVersion: "1" }, null),
    'the argument timeout of waitUntilSeen is null; give milliseconds, or a text such as "30s"',
  ],
  [() => js.config.get(5), `the argument pointer of config.get is the number 5; ${text}`],
  [
    () => js.events.normal(configMaps, "a", "A", ""),
    'the argument regarding of events.normal is "a"; give an',
  ],
  [
    () => js.events.normal(configMaps, { name: 1 }, "A", ""),
    "the name of the argument regarding of events.normal is the number 1; give a text",
  ],
  [
    () => js.events.normal(configMaps, key, undefined, ""),
    `the argument reason of events.normal is undefined;`,
  ],
  [
    () => js.events.warning(configMaps, key, HALF, ""),
    'the argument reason of events.warning is "x\\ud800"; ',
  ],
  [
    () => js.events.warning(configMaps, key, "A", {}),
    `the argument note of events.warning is an object; ${text}`,
  ],
  [
    () => js.log.enabled("loud"),
    'the argument level of log.enabled is "loud"; give one of trace, debug, info,',
  ],
  [() => js.metrics.add({}), `the argument name of metrics.add is an object; ${text}`],
  [() => js.metrics.add("a", "1"), `the argument by of metrics.add is "1"; ${number}`],
  [
    () => js.metrics.add("a", 1, { code: 200 }),
    `the label code in the argument labels of metrics.add is the number 200; ${text}`,
  ],
  [() => js.metrics.set("a"), `the argument value of metrics.set is undefined; ${number}`],
  [() => js.metrics.set("a", 1, "b"), 'the argument labels of metrics.set is "b"; give an object'],
  [() => js.queue.add("a"), 'the argument key of queue.add is "a"; give a key such as { kind: "report" }'],
  [() => js.queue.add({}), `the kind of the argument key of queue.add is undefined; ${text}`],
  [
    () => js.queue.add({ kind: "a", name: 1 }),
    `the name of the argument key of queue.add is the number 1; ${text}`,
  ],
  [() => js.queue.add({ kind: "a" }, "10m"), 'the argument options of queue.add is "10m"; give an object'],
  [
    () => js.queue.add({ kind: "a" }, { after: -1 }),
    "the option after of queue.add is -1; give milliseconds, 0 or",
  ],
  [
    () => js.queue.add({ kind: "a" }, { after: {} }),
    "the option after of queue.add is an object; give milliseconds",
  ],
  [
    () => requeueAfter(undefined as Untyped),
    "the argument after of requeueAfter is undefined; give milliseconds",
  ],
  [
    () => new RetryAfter([] as Untyped, ""),
    "the argument after of RetryAfter is a list; give milliseconds, or a",
  ],
  [() => parseDuration(["5s"] as Untyped), "a list is not a duration such as 30s, 10m, 12h or 7d"],
  [() => label(5 as Untyped), `the argument name of label is the number 5; ${text}`],
  [() => annotation(undefined as Untyped), `the argument name of annotation is undefined; ${text}`],
  [() => pointer("data", 0 as Untyped), `a segment of pointer is the number 0; ${text}`],
  [
    () => resource("v1/pods", {} as Untyped),
    'the argument kind of resource is an object; give a text such as "Pod"',
  ],
];

test("a value of a wrong type is an exception that names it", () => {
  const host = inPlugin(() => {
    for (const [call, message] of WRONG) {
      const thrown = thrownBy(call);
      assert.match(thrown, /^(Type|Range)Error: /, message);
      assert.ok(thrown.slice(thrown.indexOf(" ") + 1).startsWith(message), `${thrown}\nis not\n${message}`);
    }
  });
  assert.deepEqual([host.requests, host.events, host.queue, host.metrics.size], [[], [], [], 0]);
});

test("the object of a notification is read by pointers", () => {
  const thrown: string[] = [];
  const onAdd = ({ object }: Untyped) => {
    thrown.push(thrownBy(() => object.field(undefined)));
    thrown.push(thrownBy(() => object.fields("/a")));
    thrown.push(thrownBy(() => object.fields({ a: HALF })));
  };
  const watches = { maps: watch("v1/configmaps", { onAdd }) };
  new FakeHost(plugin({ name: "a", version: "1", watches })).added("maps", { metadata: key });
  assert.deepEqual(thrown, [
    `TypeError: the argument pointer of field is undefined; ${at}`,
    `TypeError: the argument fields of an object is "/a"; ${fields}`,
    'RangeError: the field a is "x\\ud800"; give a text without half a surrogate pair',
  ]);
});

test("a read makes the text of an error for an error only", () => {
  let made = 0;
  const what: Untyped = {
    toString() {
      made += 1;
      return "list";
    },
  };
  const phase = "/status/phase";
  assert.deepEqual(projectionOf(what, { phase }), { tag: "fields", val: [phase] });
  assert.deepEqual(projectionOf(what, {}), { tag: "keys" });
  assert.equal(made, 0);
  assert.throws(
    () => projectionOf(what, phase as Untyped),
    /the option fields of list is "\/status\/phase";/,
  );
  assert.equal(made, 1);
});

test("a log takes every value", () => {
  const host = inPlugin(() => {
    js.log.info(5, { half: HALF, symbol: Symbol("s"), none: Object.create(null), big: [2n ** 60n] });
    js.log.info(HALF, { [HALF]: { toJSON: () => HALF } });
    js.log.info(undefined, null);
    js.log.info(Object.create(null), "text");
  });
  assert.deepEqual(
    host.logs.map(({ message, pairs }) => [message, pairs]),
    [
      ["5", { half: "x\ufffd", symbol: "Symbol(s)", none: "{}", big: '["1152921504606846976"]' }],
      ["x\ufffd", { "x\ufffd": '"x\\ud800"' }],
      ["undefined", { value: "null" }],
      ["{}", { value: "text" }],
    ],
  );
});

test("a log does not throw what its values throw", () => {
  const refuse = () => raise(new Error("no"));
  const failing = (name: string) => Object.defineProperty(new Error("a"), name, { get: refuse });
  const nameless = new Proxy({}, { ownKeys: refuse });
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  const tagged = { toJSON: refuse, toString: refuse, [Symbol.toStringTag]: "T" };
  const untagged = Object.defineProperty({ ...tagged }, Symbol.toStringTag, { get: refuse });
  const host = inPlugin(() => {
    const pairs = {
      before: 1,
      get broken() {
        return refuse();
      },
      after: 2,
    };
    js.log.info("getter", pairs);
    for (const name of ["name", "message", "stack"]) js.log.info(failing(name), { [name]: failing(name) });
    js.log.info("proxy", nameless);
    js.log.info("values", { revoked, tagged, untagged });
    js.log.info(revoked, revoked);
    js.log.info("thrown", Object.defineProperty({}, "a", { enumerable: true, get: () => raise(untagged) }));
  });
  const no = "cannot be read: Error: no";
  const isRevoked = /^cannot be read: TypeError: /;
  const lines = host.logs.map(({ message, pairs }) => [message, { ...pairs }] as const);
  assert.deepEqual(lines.slice(0, 5), [
    ["getter", { before: "1", broken: no, after: "2" }],
    [no, { name: no }],
    [no, { message: no }],
    [no, { stack: no }],
    ["proxy", { error: no }],
  ]);
  const [values, both, thrown] = lines.slice(5);
  assert.match(values?.[1].revoked ?? "", isRevoked);
  assert.deepEqual([values?.[1].tagged, values?.[1].untagged], ["[object T]", "[object]"]);
  assert.match(both?.[0] ?? "", isRevoked);
  assert.match(both?.[1].error ?? "", isRevoked);
  assert.deepEqual(thrown, ["thrown", { a: "cannot be read: [object]" }]);
});

test("texts for people have no half of a surrogate pair", () => {
  const host = inPlugin(() => events.normal(configMaps, key, "A", HALF));
  assert.equal(host.events[0]?.note, "x\ufffd");
});

test("what is thrown becomes a failure, whatever it is", () => {
  let thrown: unknown;
  const tested = plugin({
    name: "a",
    version: "1",
    reconcile() {
      throw thrown;
    },
  });
  const host = new FakeHost(tested);
  const failure = (given: unknown): unknown => {
    thrown = given;
    const { reconcile } = tested.reconciler as { reconcile(key: object): unknown };
    try {
      return reconcile({ kind: "any", object: { namespace: "", name: "" } });
    } catch (failure) {
      return failure;
    }
  };
  assert.deepEqual(failure(new Retry(HALF)), { tag: "retry", val: "x\ufffd" });
  assert.deepEqual(failure(new Terminal(HALF)), { tag: "terminal", val: "x\ufffd" });
  const later = { message: "x\ufffd", afterMs: 1_000 };
  assert.deepEqual(failure(new RetryAfter("1s", HALF)), { tag: "retry-after", val: later });
  assert.deepEqual(failure(Object.assign(new Terminal(), { message: 5 })), { tag: "terminal", val: "5" });
  assert.deepEqual(failure(Object.create(null)), { tag: "retry", val: "[object Object]" });
  assert.deepEqual(failure(Symbol("s")), { tag: "retry", val: "Symbol(s)" });
  const { val } = failure(new TypeError(HALF)) as { val: string };
  assert.ok(val.startsWith("TypeError: x\ufffd\n"), val);

  thrown = Object.assign(new RetryAfter("1s", "later"), { afterMs: "5" });
  const wrong = /^Retry: TypeError: the afterMs of a RetryAfter is "5"; give a number\n/;
  assert.throws(() => host.reconcile({ kind: "any" }), wrong);
  thrown = new ThrottledError("slow down", Number.NaN);
  assert.throws(
    () => host.reconcile({ kind: "any" }),
    /^Retry: RangeError: the argument after of RetryAfter is NaN;/,
  );
});

test("reconcile returns nothing, or when it is called again", () => {
  for (const nothing of [undefined, null, false, 0, ""]) inPlugin(() => nothing);
  const refused = (returned: unknown, message: string) =>
    assert.ok(thrownBy(() => inPlugin(() => returned)).startsWith(`Retry: ${message}\n`), message);
  const give = 'give nothing, or requeueAfter("10m")';
  refused("10m", `TypeError: what reconcile returned is "10m"; ${give}`);
  refused(5_000, `TypeError: what reconcile returned is the number 5000; ${give}`);
  refused(true, `TypeError: what reconcile returned is the boolean true; ${give}`);
  refused({}, "TypeError: the afterMs of what reconcile returned is undefined; give a number");
  refused({ afterMs: -1 }, `RangeError: the afterMs of what reconcile returned is -1; ${whole}`);
});

test("a definition has values of the right types", () => {
  const refused = (definition: object | undefined, message: string) => {
    const { metadata } = plugin(() => definition as Untyped);
    const { describe } = metadata as typeof metadataExports;
    const thrown = thrownBy(describe);
    assert.ok(
      /^(Type|Range)Error: /.test(thrown) && thrown.includes(`: ${message}`),
      `${thrown}\n${message}`,
    );
  };
  const named = { name: "a", version: "1" };
  refused(undefined, "the definition of the plugin is undefined; give an object");
  refused({ version: "1" }, `the name of the plugin is undefined; ${text}`);
  refused({ name: "a", version: 1 }, `the version of the plugin is the number 1; ${text}`);
  refused({ ...named, stateless: "no" }, 'the member stateless of the plugin is "no"; give true or false');
  refused({ ...named, reconcile: {} }, "the member reconcile of the plugin is an object; give a function");
  refused({ ...named, watches: [] }, "the watches of the plugin is a list; give an object");
  refused({ ...named, watches: { a: {} } }, "the watch a is an object; give what watch(…) returns");
  refused({ ...named, watches: { [HALF]: watch("v1/pods") } }, 'the name of a watch is "x\\ud800"; ');
  refused({ ...named, listers: {} }, "the listers of the plugin is an object; give a list");
  refused({ ...named, listers: ["v1/pods"] }, 'the lister 0 of the plugin is "v1/pods"; give what lister(…)');
  refused({ ...named, requests: [null] }, "a request of the plugin is null; give an object");
  const request = { to: "v1/pods", verbs: "get" };
  refused(
    { ...named, requests: [request] },
    'the verbs of the request to pods is "get"; give a list of texts',
  );
  refused(
    { ...named, requests: [{ ...request, verbs: { get: true } }] },
    "the verbs of the request to pods is an object; give a list of texts",
  );
  refused(
    { ...named, requests: [{ ...request, verbs: new Set([1]) }] },
    `the member 0 of the verbs of the request to pods is the number 1; ${text}`,
  );
  refused(
    { ...named, requests: [{ ...request, verbs: [1] }] },
    `the member 0 of the verbs of the request to pods is the number 1; ${text}`,
  );
  const schedules = (report: unknown) => ({ ...named, schedules: { report } });
  refused(schedules(null), "the schedule report is null; give an object");
  refused(schedules({ cron: 5 }), `the cron of the schedule report is the number 5; ${text}`);
  refused(
    schedules({ every: "1m", atStart: 1 }),
    "the option atStart of the schedule report is the number 1;",
  );
  refused(
    schedules({ every: "1m", key: "all" }),
    'the key of the schedule report is "all"; give a key such as',
  );
  const every = "the interval of the schedule report is null; give milliseconds";
  refused(schedules({ every: null }), every);

  const watched = (options: object) => ({ ...named, watches: { a: watch("v1/pods", options as Untyped) } });
  const option = "the option";
  for (const [options, message] of [
    [{ namespace: 1 }, `${option} namespace of the watch a is the number 1; ${text}`],
    [{ labelSelector: {} }, `${option} labelSelector of the watch a is an object; ${text}`],
    [{ fields: "/a" }, `${option} fields of the watch a is "/a"; ${fields}`],
    [{ fields: { phase: 1 } }, `the field phase is the number 1; ${at}`],
    [{ ignoreOwnWrites: 1 }, `${option} ignoreOwnWrites of the watch a is the number 1; give true or false`],
    [{ enqueue: { label: HALF } }, 'the enqueue of the watch a is "x\\ud800"; '],
    [
      { conditions: [{ at: HALF, exists: true }] },
      'the pointer of a condition of the watch a is "x\\ud800"; ',
    ],
    [
      { conditions: [{ at: "/a", equals: { b: Number.NaN } }] },
      "the member b in the condition on /a of the watch a is NaN, which JSON does not have; give a finite number",
    ],
    [{ resync: {} }, "the resync of the watch a is an object; give milliseconds, or a text such as"],
  ] as const) {
    refused(watched(options), message);
  }
  const early = (options: unknown, message: string) =>
    assert.equal(
      thrownBy(() => watch("v1/pods", options as Untyped)),
      `TypeError: ${message}`,
    );
  early(null, "the watch of v1/pods is null; give an object");
  early({ onAdd: "log" }, 'onAdd of the watch of v1/pods is "log"; give a function');
  early({ conditions: {} }, "the option conditions of the watch of v1/pods is an object; give a list");
  early({ conditions: [null] }, "a condition of the watch of v1/pods is null; give an object");
  const listed = (options: unknown) => ({ ...named, listers: [lister("v1/pods", options as Untyped)] });
  for (const [options, message] of [
    [{ namespace: 1 }, `${option} namespace of the lister pods is the number 1; ${text}`],
    [{ content: "all" }, `${option} content of the lister pods is "all"; give one of metadata, full`],
    [{ wakes: "yes" }, `${option} wakes of the lister pods is "yes"; give true or false`],
    [{ indices: { a: { label: HALF } } }, 'the index a of the lister pods is "x\\ud800"; '],
  ] as const) {
    refused(listed(options), message);
  }
  assert.throws(
    () => lister("v1/pods", { name: 5 as Untyped }),
    /the name of a lister is the number 5; give/,
  );
  assert.throws(
    () => lister("v1/pods", { indices: "a" as Untyped }),
    /the option indices of the lister of v1/,
  );
});

test("null is an absent value where one may be left out", () => {
  const other = { namespace: "home", name: "b" };
  let added = 0;
  const onAdd = () => {
    added += 1;
    for (const list of [js.client.list, (_: unknown, options: Untyped) => cached.list(options)]) {
      assert.equal([...list(configMaps, { pageSize: null })].length, 2);
    }
    js.client.patch(configMaps, key, {}, { preconditions: { uid: null, resourceVersion: null } });
    js.client.delete(configMaps, other, { gracePeriodSeconds: null, preconditions: { uid: null } });
  };
  const handlers = { onAdd, onUpdate: null, onDelete: null, onSynced: null } as Untyped;
  const tested = plugin({
    name: "a",
    version: "1",
    listers: [cached],
    watches: { maps: watch("v1/configmaps", handlers) },
    schedules: { report: { every: "1m", key: null } } as Untyped,
    reconcile: null as Untyped,
  });
  const { describe } = tested.metadata as typeof metadataExports;
  assert.equal(describe().schedules[0]?.key, null);
  const host = new FakeHost(tested);
  host.put(configMaps, { metadata: other });
  host.added("maps", { metadata: key });
  host.updated("maps", { metadata: key });
  host.deleted("maps", key);
  host.synced("maps");
  assert.equal(added, 1);
  assert.deepEqual(
    host.requests.map(({ verb }) => verb),
    ["patch", "delete"],
  );
});

test("the verbs of a request may be any iterable", () => {
  const verbs = ["get", "list"];
  for (const given of [verbs, new Set(verbs), verbs.values()]) {
    const requests = [{ to: "v1/pods", verbs: given as Untyped }];
    const { describe } = plugin({ name: "a", version: "1", requests }).metadata as typeof metadataExports;
    assert.deepEqual(describe().requests[0]?.verbs, verbs);
  }
});

test("an integer that JavaScript may have rounded is not written", () => {
  const widgets = "example.com/v1/widgets";
  const host = inPlugin((host) => {
    const big = { metadata: { name: "w" }, spec: { limit: 2 ** 53, other: 1 } };
    host.put(widgets, big);
    const live = client.get<Untyped>(widgets, { name: "w" });
    assert.equal(live.spec.limit, 2 ** 53, "as it is read");
    const message =
      "the member limit in the argument object of client.replace is 9007199254740992; JavaScript rounds " +
      "integers beyond 2^53, so the object may have had another one: change the other fields with " +
      "client.patch, or give a BigInt";
    const changed = { ...live, spec: { ...live.spec, other: 2 } };
    assert.equal(
      thrownBy(() => client.replace(widgets, changed)),
      `RangeError: ${message}`,
    );
    for (const write of [client.create, client.apply]) {
      assert.match(
        thrownBy(() => write(widgets, big)),
        /^RangeError: the member limit in /,
      );
    }
    // As texts, the integers of 64 bits at both ends.
    for (const text of ["-9223372036854775808", "-9007199254740993", "9223372036854775807"]) {
      const spec = JSON.parse(`{"limit":${text}}`);
      const patched = thrownBy(() => client.patch(widgets, { name: "w" }, { spec }));
      assert.match(patched, /^RangeError: the member limit in /, text);
    }
    // Safe integers, and numbers that are no integers of 64 bits.
    client.patch(widgets, { name: "w" }, { spec: { other: [2 ** 53 - 1, 1e300, -0.5] } });
  });
  assert.deepEqual(host.get<Untyped>(widgets, { name: "w" })?.spec, {
    limit: 2 ** 53,
    other: [2 ** 53 - 1, 1e300, -0.5],
  });
});

test("a BigInt is written as a number", () => {
  const [parse, texts] = [JSON.parse, [] as string[]];
  inPlugin(() => {
    JSON.parse = (text: string) => {
      texts.push(text);
      return parse(text);
    };
    try {
      const patch = { data: { a: [2n ** 53n + 1n, -(2n ** 60n)], b: '"\\ud8001"', c: "1" } };
      client.patch(configMaps, key, patch);
    } finally {
      JSON.parse = parse;
    }
  });
  assert.equal(
    texts[0],
    '{"data":{"a":[9007199254740993,-1152921504606846976],"b":"\\"\\\\ud8001\\"","c":"1"}}',
  );
});

test("the configuration cannot be changed, and few of its values are kept", () => {
  inPlugin(
    () => {
      const all = config.all<Untyped>();
      assert.throws(() => {
        all.list[0].name = "b";
      }, TypeError);
      assert.throws(() => config.get<Untyped>("/list").push(1), TypeError);
      assert.equal(config.get("/list/0/name"), "a");
      const list = config.get("/list");
      assert.equal(config.get("/list"), list, "it is kept");
      for (let n = 0; n < 1_000; n++) config.get(`/names/${n}`);
      assert.notEqual(config.get("/list"), list, "it is read again");
      assert.deepEqual(config.get("/list"), list);
    },
    { config: { list: [{ name: "a" }] } },
  );
});

test("the types of the configuration say that it cannot be changed", () => {
  interface Limits {
    names: string[];
    pairs: [string, { count: number }][];
    most?: number;
  }
  inPlugin(
    () => {
      const names = config.get<string[]>("/names") ?? [];
      // @ts-expect-error: a list of the configuration is sorted as a copy.
      assert.throws(() => names.sort(), TypeError);
      assert.deepEqual([...names].sort(), ["a", "b"]);
      const limits = config.all<Limits>();
      const pair = limits.pairs[0];
      assert.throws(() => {
        // @ts-expect-error: nor is what it contains changed.
        if (pair) pair[1].count = 2;
      }, TypeError);
      assert.throws(() => {
        // @ts-expect-error
        delete config.all().names;
      }, TypeError);
      // Texts, numbers and unions stay what they are.
      const most: number | undefined = limits.most;
      const either: string | readonly string[] | undefined = config.get<string | string[]>("/names/0");
      const count: number | undefined = pair?.[1].count;
      assert.deepEqual([most, either, count], [undefined, "b", 1]);
    },
    { config: { names: ["b", "a"], pairs: [["a", { count: 1 }]] } },
  );
});
