import assert from "node:assert/strict";
import test from "node:test";
import type * as metadataExports from "oarlock:plugin/metadata@0.1.0";
import {
  type Added,
  config,
  InvalidError,
  LimitExceededError,
  lister,
  NotDeclaredError,
  plugin,
  Retry,
  RetryAfter,
  requeueAfter,
  resource,
  Terminal,
  ThrottledError,
  UnavailableError,
  watch,
} from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import type { Pod } from "kubernetes-types/core/v1";

const pods = resource<Pod>("v1/pods", "Pod");
const web: Pod = {
  metadata: { name: "web", namespace: "shop", labels: { app: "web" } },
  spec: { containers: [] },
};

/** Returns the texts that were parsed during a call. */
function parsedDuring(call: () => void): string[] {
  const [parse, texts] = [JSON.parse, [] as string[]];
  JSON.parse = (text: string) => {
    texts.push(text);
    return parse(text);
  };
  try {
    call();
  } finally {
    JSON.parse = parse;
  }
  return texts;
}

test("a field is parsed when it is read, and nothing else", () => {
  const parsed: string[] = [];
  const tested = plugin({
    name: "a",
    version: "1",
    watches: {
      pods: watch(pods, {
        fields: { phase: "/status/phase", spec: "/spec" },
        onAdd({ object, fields }) {
          parsed.push(...parsedDuring(() => assert.equal(object.field("/metadata/labels/app"), "web")));
          parsed.push(...parsedDuring(() => assert.equal(fields.phase, undefined)));
          parsed.push(
            ...parsedDuring(() => assert.deepEqual([fields.spec, fields.spec], [web.spec, web.spec])),
          );
        },
      }),
    },
  });
  new FakeHost(tested).added("pods", web);
  assert.deepEqual(parsed, ['"web"', '{"containers":[]}']);
});

test("the whole object is parsed once", () => {
  const tested = plugin({
    name: "a",
    version: "1",
    watches: {
      pods: watch(pods, {
        onAdd({ object }) {
          const texts = parsedDuring(() => assert.equal(object.parse().spec, object.parse().spec));
          assert.equal(texts.length, 1);
        },
      }),
    },
  });
  new FakeHost(tested).added("pods", web);
});

test("an update has both states", () => {
  const seen: unknown[] = [];
  const tested = plugin({
    name: "a",
    version: "1",
    watches: {
      pods: watch(pods, {
        fields: { phase: "/status/phase" },
        onUpdate({ fields, old, object, isResync }) {
          seen.push([old.fields.phase, fields.phase, isResync]);
          seen.push([old.object.field("/status/phase"), object.fields({ phase: "/status/phase" })]);
        },
        onDelete({ object, fields }) {
          seen.push([fields.phase, object.field("/metadata/name"), { ...fields }]);
        },
      }),
    },
  });
  const host = new FakeHost(tested);
  host.put(pods, { ...web, status: { phase: "Pending" } });
  host.updated("pods", { ...web, status: { phase: "Running" } });
  host.deleted("pods", { namespace: "shop", name: "web" });
  assert.deepEqual(seen, [
    ["Pending", "Running", false],
    ["Pending", { phase: "Running" }],
    ["Running", "web", { phase: "Running" }],
  ]);
});

test("the object of a notification cannot be read after it", () => {
  const kept: Added<Pod, object>[] = [];
  const tested = plugin({
    name: "a",
    version: "1",
    watches: { pods: watch(pods, { onAdd: (event) => void kept.push(event) }) },
  });
  const host = new FakeHost(tested);
  host.added("pods", web);
  assert.throws(() => kept[0]?.object.json(), /the notification about web has been handled/);
});

test("what a handler throws says how the host goes on", () => {
  const thrown: unknown[] = [];
  const tested = plugin({
    name: "a",
    version: "1",
    reconcile() {
      throw thrown.pop();
    },
  });
  const host = new FakeHost(tested);
  const failure = (error: unknown) => {
    thrown.push(error);
    try {
      host.reconcile({ kind: "any" });
    } catch (error) {
      return error as Error & { afterMs?: number };
    }
    throw new Error("the call did not fail");
  };
  assert.ok(failure(new Terminal("no")) instanceof Terminal);
  assert.equal(failure(new RetryAfter("2s", "later")).afterMs, 2_000);
  assert.equal(failure(new ThrottledError("slow down", 7_000)).afterMs, 7_000);
  for (const passing of [new UnavailableError("no answer"), new ThrottledError("no answer")]) {
    const failed = failure(passing);
    assert.ok(failed instanceof Retry);
    assert.equal(failed.message, `${passing.name}: no answer`);
  }
  for (const lasting of [new InvalidError("no"), new LimitExceededError("no"), new NotDeclaredError("no")]) {
    const failed = failure(lasting);
    assert.ok(failed instanceof Terminal);
    assert.equal(failed.message, `${lasting.name}: no`);
    assert.equal(failed.cause, lasting);
  }
  const unexpected = failure(new TypeError("x is undefined"));
  assert.ok(unexpected instanceof Retry);
  assert.match(unexpected.message, /^TypeError: x is undefined\n +at .*plugin\.test/);
});

test("an async handler is refused", () => {
  const tested = plugin({ name: "a", version: "1", watches: { pods: watch(pods, { async onAdd() {} }) } });
  const host = new FakeHost(tested);
  assert.throws(() => host.added("pods", web), {
    name: "Terminal",
    message: /onAdd of the watch pods returned a promise/,
  });
});

test("reconcile gets flat keys, and is called again when it says so", () => {
  const keys: unknown[] = [];
  const tested = plugin({
    name: "a",
    version: "1",
    reconcile(key) {
      keys.push(key);
      return key.name === "again" ? requeueAfter("1m") : undefined;
    },
  });
  const host = new FakeHost(tested);
  assert.equal(host.reconcile({ kind: "pods", namespace: "shop", name: "again" }), 60_000);
  assert.equal(host.reconcile({ kind: "report" }), undefined);
  assert.deepEqual(keys, [
    { kind: "pods", namespace: "shop", name: "again" },
    { kind: "report", namespace: "", name: "" },
  ]);
});

test("a definition may depend on the configuration", () => {
  const tested = plugin(() => ({
    name: "a",
    version: "1",
    watches: { [config.get<string>("/watch") ?? ""]: watch(pods, {}) },
  }));
  new FakeHost(tested, { config: { watch: "first" } }).added("first", web);
  new FakeHost(tested, { config: { watch: "second" } }).added("second", web);
});

test("an error in the definition stops the load", () => {
  const tested = plugin(() => ({ name: "a", version: "1", watches: { bad: watch("pods", {}) } }));
  assert.throws(
    () => new FakeHost(tested),
    /does not load the plugin: TypeError: "pods" is not a resource such as v1\/pods/,
  );
});

test("everything that the contract can say is declared", () => {
  const tested = plugin({
    name: "all",
    version: "1",
    stateless: true,
    watches: {
      pods: watch(pods, {
        namespace: "shop",
        labelSelector: "app=web",
        conditions: [
          { at: "/a", exists: true },
          { at: "/b", exists: false },
          { at: "/c", equals: "x" },
          { at: "/d", differs: 1 },
          { at: "/e", in: ["x", "y"] },
          { at: "/f", notIn: [null] },
          { at: "/g", greater: 3 },
          { at: "/h", less: "m" },
        ],
        fields: { phase: "/status/phase" },
        content: "metadata",
        resync: "5m",
        enqueue: { controllerOwner: "ReplicaSet", group: "apps" },
        ignoreOwnWrites: true,
      }),
      named: watch("v1/pods", { enqueue: { pointer: "/spec/nodeName", scope: "cluster" } }),
      labelled: watch("v1/pods", { enqueue: { label: "team" } }),
      together: watch("v1/pods", { enqueue: { key: { kind: "all" } } }),
      each: watch("apps/v1/deployments", { enqueue: "itself" }),
    },
    listers: [
      lister(pods, {
        wakes: true,
        indices: { node: { pointer: "/spec/nodeName" }, app: { label: "app" }, owner: "owner-uid" },
      }),
    ],
    requests: [{ to: pods, verbs: ["patch"], namespace: "shop", subresource: "status" }],
    schedules: {
      often: { every: "90s", atStart: true },
      nightly: { cron: "0 3 * * *", timeZone: "Europe/Berlin", key: { kind: "report", name: "night" } },
    },
  });
  const target = { group: "", version: "v1", plural: "pods" };
  const [all, shop] = [{ tag: "all" }, { tag: "one", val: "shop" }];
  const plain = {
    target,
    namespaces: all,
    labelSelector: "",
    conditions: [],
    fields: [],
    content: "full",
    resyncSeconds: 0,
    ignoreOwnWrites: false,
  };
  const description = (tested.metadata as { describe(): unknown }).describe();
  assert.deepEqual(description, {
    name: "all",
    version: "1",
    stateless: true,
    subscriptions: [
      {
        name: "pods",
        target,
        namespaces: shop,
        labelSelector: "app=web",
        conditions: [
          { pointer: "/a", test: { tag: "exists" } },
          { pointer: "/b", test: { tag: "absent" } },
          { pointer: "/c", test: { tag: "equals", val: '"x"' } },
          { pointer: "/d", test: { tag: "differs", val: "1" } },
          { pointer: "/e", test: { tag: "in", val: ['"x"', '"y"'] } },
          { pointer: "/f", test: { tag: "not-in", val: ["null"] } },
          { pointer: "/g", test: { tag: "greater", val: "3" } },
          { pointer: "/h", test: { tag: "less", val: '"m"' } },
        ],
        fields: ["/status/phase"],
        content: "metadata",
        resyncSeconds: 300,
        enqueue: {
          tag: "controller-owner",
          val: { group: "apps", kind: "ReplicaSet", scope: "same-namespace" },
        },
        ignoreOwnWrites: true,
      },
      {
        ...plain,
        name: "named",
        enqueue: { tag: "pointer", val: { at: "/spec/nodeName", scope: "cluster" } },
      },
      { ...plain, name: "labelled", enqueue: { tag: "label", val: { at: "team", scope: "same-namespace" } } },
      {
        ...plain,
        name: "together",
        enqueue: { tag: "key", val: { kind: "all", object: { namespace: "", name: "" } } },
      },
      {
        ...plain,
        name: "each",
        target: { group: "apps", version: "v1", plural: "deployments" },
        enqueue: { tag: "itself" },
      },
    ],
    reads: [{ name: "pods", target, namespaces: all, content: "full", wakes: true }],
    indices: [
      { name: "pods/node", lister: "pods", source: { tag: "pointer", val: "/spec/nodeName" } },
      { name: "pods/app", lister: "pods", source: { tag: "label", val: "app" } },
      { name: "pods/owner", lister: "pods", source: { tag: "owner-uid" } },
    ],
    requests: [{ target, namespaces: shop, verbs: ["patch"], subresource: "status" }],
    schedules: [
      { name: "often", trigger: { tag: "every-seconds", val: 90 }, atStart: true, key: null },
      {
        name: "nightly",
        trigger: { tag: "at", val: { cron: "0 3 * * *", timeZone: "Europe/Berlin" } },
        atStart: false,
        key: { kind: "report", object: { namespace: "", name: "night" } },
      },
    ],
  });
});

test("a misspelt option is refused with the options that there are", () => {
  const misspelt = { onAded() {} } as object;
  assert.throws(() => watch("apps/v1/deployments", misspelt), {
    name: "TypeError",
    message:
      /^the watch of apps\/v1\/deployments has an unknown option onAded; the options are .*, onAdd, onUpdate/,
  });
  assert.throws(
    () => lister(pods, { index: {} } as object),
    /^TypeError: the lister of v1\/pods has an unknown/,
  );
  const definition = { name: "a", version: "1", watch: {} } as object as Parameters<typeof plugin>[0];
  assert.throws(
    () => new FakeHost(plugin(definition)),
    /the plugin has an unknown option watch; the options/,
  );
});

test("requests and schedules have known options", () => {
  const refused = (definition: object, message: string) => {
    const tested = plugin({ name: "a", version: "1", ...definition });
    const describe = (tested.metadata as typeof metadataExports).describe;
    assert.throws(describe, (thrown) => `${thrown}`.startsWith(`TypeError: ${message}\n`), message);
  };
  const request = { to: "v1/pods", verbs: ["get"], namspace: "shop" };
  const options = "the options are to, verbs, namespace, subresource";
  refused({ requests: [request] }, `the request to pods has an unknown option namspace; ${options}`);
  const known = "the options are atStart, key, every, cron, timeZone";
  const schedules = (report: object) => ({ schedules: { report } });
  const every = "1m";
  refused(schedules({ every, atStrat: true }), `the schedule report has an unknown option atStrat; ${known}`);
  for (const neither of [{}, { every, cron: "0 3 * * *" }]) {
    refused(schedules(neither), "the schedule report needs one of every and cron");
  }
  assert.throws(() => watch("v1/pods", { content: "ful" } as object), {
    name: "TypeError",
    message: "the watch of v1/pods has an unknown content ful; the contents are metadata, full",
  });
});

test("a condition has one test, with a value of its type", () => {
  const refused = (condition: object, message: string) =>
    assert.throws(() => watch("v1/pods", { conditions: [condition] } as object), {
      name: "TypeError",
      message,
    });
  const on = "the condition on /spec/nodeName of the watch of v1/pods";
  const tests = "the tests are exists, equals, differs, in, notIn, greater, less";
  const at = "/spec/nodeName";
  refused({ at, notin: ["a"] }, `${on} has an unknown test notin; ${tests}`);
  refused({ at }, `${on} has no test; ${tests}`);
  refused({ at, equals: undefined }, `${on} has no test; ${tests}`);
  refused({ at, greater: 1, less: 5 }, `${on} has several tests (greater, less); write a condition for each`);
  const wrong = (name: string, value: unknown, type: string) =>
    refused({ at, [name]: value }, `${on} has a wrong value for the test ${name}; give ${type}`);
  wrong("exists", "false", "true or false");
  for (const value of [Number.NaN, 1n, () => true]) {
    wrong("equals", value, "a JSON value");
    wrong("differs", value, "a JSON value");
    wrong("in", [value], "a list of JSON values");
    wrong("less", value, "a number or a string");
  }
  wrong("in", [undefined], "a list of JSON values");
  wrong("notIn", "a", "a list of JSON values");
  wrong("greater", null, "a number or a string");
  refused(
    { pointer: at, exists: true },
    'a condition of the watch of v1/pods has no JSON pointer; write at: "/spec/nodeName"',
  );
});

test("an enqueue has one target, with a value of its type", () => {
  const refused = (enqueue: unknown, message: string) =>
    assert.throws(() => watch("v1/pods", { enqueue } as object), { name: "TypeError", message });
  const of = "the enqueue of the watch of v1/pods";
  const targets = "controllerOwner, pointer, label, key";
  for (const given of ["itslef", null, true]) {
    refused(given, `${of} is ${given}; give "itself", or an object with one of ${targets}`);
  }
  const options = `the options are ${targets}, group, scope`;
  refused({ lable: "team" }, `${of} has an unknown option lable; ${options}`);
  refused({ label: "team", scop: "cluster" }, `${of} has an unknown option scop; ${options}`);
  refused({ scope: "cluster" }, `${of} has no target; the targets are ${targets}`);
  refused({ label: undefined }, `${of} has no target; the targets are ${targets}`);
  refused({ label: "a", pointer: "/b" }, `${of} has several targets (label, pointer); give one of them`);
  refused({ label: ["a"] }, `${of} has a wrong value for the target label; give a text`);
  for (const key of ["report", null, { name: "report" }]) {
    refused({ key }, `${of} has a wrong value for the target key; give a key such as { kind: "report" }`);
  }
  const key = { kind: "report", nmae: "a" };
  refused({ key }, `the key of ${of} has an unknown option nmae; the options are kind, namespace, name`);
  refused(
    { controllerOwner: "ReplicaSet", group: null },
    `${of} has a wrong value for the option group; give a text`,
  );
  refused(
    { pointer: "/spec/nodeName", scope: "clutser" },
    `${of} has an unknown scope clutser; the scopes are same-namespace, cluster`,
  );
});

test("an index has one source, with a value of its type", () => {
  const refused = (source: unknown, message: string) =>
    assert.throws(() => lister("v1/pods", { indices: { byNode: source } } as object), {
      name: "TypeError",
      message,
    });
  const of = "the index byNode of the lister of v1/pods";
  refused("owner", `${of} is owner; give "owner-uid", or an object with one of label, pointer`);
  refused({ lable: "app" }, `${of} has an unknown source lable; the sources are label, pointer`);
  refused({ label: undefined }, `${of} has no source; the sources are label, pointer`);
  refused(
    { label: "app", pointer: "/a" },
    `${of} has several sources (label, pointer); declare an index for each`,
  );
  refused({ pointer: 1 }, `${of} has a wrong value for the source pointer; give a text`);
});

test("a name whose value is undefined is absent", () => {
  const tested = plugin({
    name: "a",
    version: "1",
    watches: {
      pods: watch(pods, {
        conditions: [
          { at: "/a", exists: true, equals: undefined },
          { at: "/b", exists: undefined, less: 3 },
        ],
        enqueue: { controllerOwner: undefined, label: "team" },
      }),
    },
    listers: [lister(pods, { indices: { node: { label: undefined, pointer: "/spec/nodeName" } } })],
    schedules: { often: { cron: undefined, every: "90s" } },
  });
  const { subscriptions, indices, schedules } = (tested.metadata as typeof metadataExports).describe();
  assert.deepEqual(subscriptions[0]?.conditions, [
    { pointer: "/a", test: { tag: "exists" } },
    { pointer: "/b", test: { tag: "less", val: "3" } },
  ]);
  assert.deepEqual(subscriptions[0]?.enqueue, {
    tag: "label",
    val: { at: "team", scope: "same-namespace" },
  });
  assert.deepEqual(indices[0]?.source, { tag: "pointer", val: "/spec/nodeName" });
  assert.deepEqual(schedules[0]?.trigger, { tag: "every-seconds", val: 90 });
});

test("an exception about what components lack says so", () => {
  const tested = plugin({
    name: "a",
    version: "1",
    watches: {
      pods: watch(pods, {
        onAdd() {
          throw new ReferenceError("fetch is not defined");
        },
        onDelete() {
          throw new ReferenceError("x is not defined");
        },
      }),
    },
  });
  const host = new FakeHost(tested);
  assert.throws(
    () => host.added("pods", web),
    /ReferenceError: fetch is not defined \(a component has neither/,
  );
  assert.throws(
    () => host.deleted("pods", { namespace: "shop", name: "web" }),
    /ReferenceError: x is not defined$/m,
  );
});
