import assert from "node:assert/strict";
import test from "node:test";
import {
  AlreadyExistsError,
  ConflictError,
  client,
  clock,
  config,
  events,
  InvalidError,
  LimitExceededError,
  lister,
  log,
  metrics,
  NotDeclaredError,
  OarlockError,
  plugin,
  queue,
  resource,
} from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import type { ConfigMap } from "kubernetes-types/core/v1";

const configMaps = resource<ConfigMap>("v1/configmaps", "ConfigMap");
const cached = lister(configMaps, {
  indices: { color: { pointer: "/data/color" }, team: { label: "team" } },
});

/** Runs a body as the `reconcile` of a plugin. */
function inPlugin(body: (host: FakeHost) => void, options?: { config: object }): FakeHost {
  const tested = plugin({ name: "a", version: "1", listers: [cached], reconcile: () => body(host) });
  const host: FakeHost = new FakeHost(tested, options);
  for (const [name, color] of ["red", "green", "blue"].entries()) {
    const labels = { team: color === "blue" ? "b" : "a" };
    host.put(configMaps, { metadata: { name: `cm-${name}`, namespace: "home", labels }, data: { color } });
  }
  host.reconcile({ kind: "any" });
  return host;
}

test("a lister returns objects or typed fields, and undefined for what is not there", () => {
  inPlugin(() => {
    const key = { namespace: "home", name: "cm-0" };
    assert.equal(cached.get(key)?.data?.color, "red");
    const row = cached.get(key, { fields: { color: "/data/color", none: "/data/none" } });
    const color: string | undefined = row?.fields.color;
    assert.deepEqual([color, row?.fields.none, row?.name], ["red", undefined, "cm-0"]);
    assert.equal(cached.get({ namespace: "home", name: "none" }), undefined);
    assert.throws(() => cached.get({}), /the key of an object has no name/);
    assert.throws(() => [...lister("v1/secrets").list()], NotDeclaredError);
  });
});

test("a list fetches the next page when it is needed", () => {
  inPlugin((host) => {
    const names = [];
    for (const { name } of cached.list({ fields: {}, pageSize: 1 })) {
      names.push(name);
      if (name === "cm-0") host.remove(configMaps, { namespace: "home", name: "cm-1" });
    }
    assert.deepEqual(names, ["cm-0", "cm-2"], "cm-1 was removed before its page was fetched");
    assert.equal([...cached.list({ namespace: "nowhere" })].length, 0);
    assert.equal([...cached.list({ labelSelector: "team in (a,c),!gone" })].length, 1);
  });
});

test("an index finds objects by a field or a label", () => {
  inPlugin(() => {
    assert.deepEqual(cached.indexValues("color"), ["blue", "green", "red"]);
    const [first, ...others] = cached.byIndex("team", "a");
    assert.equal(first?.data?.color, "red");
    assert.equal(others.length, 1);
    const [row] = cached.byIndex("color", "blue", { fields: { team: "/metadata/labels/team" } });
    assert.equal(row?.fields.team, "b");
  });
});

test("a live list of large objects is read in smaller pages", () => {
  inPlugin((host) => {
    const large = (name: string, length: number) => {
      host.put(configMaps, { metadata: { namespace: "large", name }, data: { text: "x".repeat(length) } });
    };
    for (let n = 0; n < 9; n++) large(`cm-${n}`, 1 << 20);
    const names = [...client.list(configMaps, { namespace: "large" })].map(({ metadata }) => metadata?.name);
    assert.deepEqual(
      names,
      [...Array(9).keys()].map((n) => `cm-${n}`),
    );
    large("cm-9", 5 << 20);
    assert.throws(() => [...client.list(configMaps, { namespace: "large" })], LimitExceededError);
  });
});

test("writes return what was written, and errors have classes", () => {
  const host = inPlugin((host) => {
    const made = { metadata: { namespace: "home", name: "made" }, data: { a: "1" } };
    const written = client.create(configMaps, made);
    assert.deepEqual([written.namespace, written.name], ["home", "made"]);
    assert.equal(client.get(configMaps, written)?.metadata?.uid, written.uid, "it is a key");
    assert.throws(() => client.create(configMaps, made), AlreadyExistsError);
    const key = { namespace: "home", name: "made" };
    const patch = { data: { b: "2", a: null } };
    assert.equal(client.patch(configMaps, key, patch, { preconditions: written }).namespace, "home");
    assert.throws(() => client.patch(configMaps, key, {}, { preconditions: written }), ConflictError);
    client.patch(configMaps, key, [{ op: "add", path: "/data/c", value: "3" }], { type: "json" });
    const live = client.get(configMaps, key);
    assert.ok(live);
    const replaced = client.replace(configMaps, { ...live, data: { ...live.data, d: "4" } });
    const applied = client.apply(configMaps, { ...made, data: { e: "5" } }, { force: true });
    assert.deepEqual([replaced.namespace, applied.namespace], ["home", "home"]);
    assert.equal(client.create(resource("v1/namespaces"), { metadata: { name: "n" } }).namespace, "");
    assert.deepEqual(host.get(configMaps, key)?.data, { b: "2", c: "3", d: "4", e: "5" });
    assert.equal(client.delete(configMaps, key), true);
    assert.equal(client.delete(configMaps, key), false);
    assert.equal(client.get(configMaps, key), undefined);
    assert.equal([...client.list(configMaps, { fieldSelector: "metadata.name=cm-1" })].length, 1);
  });
  assert.deepEqual(
    host.requests.map(({ verb, object, error }) => [verb, object, error]),
    [
      ["create", "home/made", undefined],
      ["create", "home/made", "already-exists"],
      ["patch", "home/made", undefined],
      ["patch", "home/made", "conflict"],
      ["patch", "home/made", undefined],
      ["replace", "home/made", undefined],
      ["apply", "home/made", undefined],
      ["create", "n", undefined],
      ["delete", "home/made", undefined],
      ["delete", "home/made", "not-found"],
    ],
  );
});

test("status and scale are subresources", () => {
  const deployments = resource("apps/v1/deployments");
  const host = inPlugin((host) => {
    host.put(deployments, { metadata: { name: "web", namespace: "home" } });
    client.status(deployments, { namespace: "home", name: "web" }, { ready: true });
    client.scale(deployments, { namespace: "home", name: "web" }, 3);
  });
  assert.deepEqual(
    host.requests.map(({ resource, body }) => [resource, body]),
    [
      ["apps/v1/deployments/status", { status: { ready: true } }],
      ["apps/v1/deployments/scale", { spec: { replicas: 3 } }],
    ],
  );
});

test("a test can order an error", () => {
  inPlugin((host) => {
    host.fail("client.create", new InvalidError("no"));
    assert.throws(
      () => client.create(configMaps, {}),
      (error) => error instanceof OarlockError && error.code === "invalid",
    );
  });
});

test("the host records Events, log lines, metrics and keys", () => {
  const host = inPlugin(() => {
    const object = cached.get({ namespace: "home", name: "cm-0" });
    events.warning(configMaps, object?.metadata ?? {}, "Refused", "it is in use");
    assert.throws(() => events.normal(resource("v1/pods"), {}, "A", ""), /needs the kind of v1\/pods/);
    log.info("copied", { to: "home", count: 2, none: undefined, list: [1] });
    metrics.add("copies", 2, { kind: "ConfigMap" });
    metrics.add("copies", 1, { kind: "ConfigMap" });
    metrics.set("sources", 4);
    queue.add({ kind: "all" });
    queue.add({ kind: "one", namespace: "home", name: "a" }, { after: "2s" });
  });
  assert.deepEqual(host.events, [
    { type: "warning", reason: "Refused", regarding: "ConfigMap home/cm-0", note: "it is in use" },
  ]);
  assert.deepEqual(host.logs, [
    { level: "info", message: "copied", pairs: { to: "home", count: "2", list: "[1]" } },
  ]);
  assert.deepEqual(Object.fromEntries(host.metrics), { 'copies{kind="ConfigMap"}': 3, sources: 4 });
  assert.deepEqual(host.queue, [
    { kind: "all", namespace: "", name: "" },
    { kind: "one", namespace: "home", name: "a", afterMs: 2_000 },
  ]);
});

test("configuration and time are those of the test", () => {
  inPlugin(
    (host) => {
      assert.equal(config.get("/limit"), 3);
      assert.equal(config.get("/none"), undefined);
      assert.deepEqual(config.all(), { limit: 3 });
      assert.equal(clock.now().toISOString(), "2026-01-01T00:00:00.000Z");
      host.advance("90s");
      assert.equal(clock.now().toISOString(), "2026-01-01T00:01:30.000Z");
      assert.equal(clock.elapsed(), 90_000);
      host.advance("60d");
      assert.equal(clock.now().toISOString(), "2026-03-02T00:01:30.000Z");
    },
    { config: { limit: 3 } },
  );
});
