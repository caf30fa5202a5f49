import assert from "node:assert/strict";
import test from "node:test";
import { ConflictError, Retry } from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import type { Copied } from "../kind.ts";
import * as plugin from "../plugin.ts";
import { chosen, fromText } from "../source.ts";

const SETTINGS = { namespace: "home", name: "settings" };

/** Returns a host with the namespaces home, team-a, team-b and kube-system. */
function newHost(): FakeHost {
  const host = new FakeHost(plugin, { config: { excludedNamespaces: ["kube-system"] } });
  for (const name of ["home", "team-a", "team-b", "kube-system"])
    host.put("v1/namespaces", { metadata: { name } });
  return host;
}

function source(mirrorTo: string, data: Record<string, string> = { a: "1" }): Copied {
  return { metadata: { ...SETTINGS, annotations: { "oarlock.dev/mirror-to": mirrorTo } }, data };
}

function copyIn(host: FakeHost, namespace: string): Copied | undefined {
  return host.get("v1/configmaps", { namespace, name: "settings" });
}

test("targets are existing namespaces except the own", () => {
  const existing = ["home", "team-a", "team-b", "kube-system"];
  const targets = (mirrorTo: string) => chosen(mirrorTo, "home", existing, new Set(["kube-system"]));
  assert.deepEqual(targets("team-a, team-b,nowhere,home"), ["team-a", "team-b"]);
  assert.deepEqual(targets("*"), ["team-a", "team-b"]);
  assert.deepEqual(targets("*,kube-system"), ["team-a", "team-b", "kube-system"]);
  assert.deepEqual(targets(" , "), []);
});

test("a source key is a namespace and a name", () => {
  assert.deepEqual(fromText("home/settings"), SETTINGS);
  for (const text of ["", "settings", "/settings", "home/", "a/b/c", undefined])
    assert.equal(fromText(text), undefined);
});

test("a copy has the content and the origin of its source only", () => {
  const host = newHost();
  host.added("configmap-sources", { ...source("*"), immutable: true } as Copied);
  assert.deepEqual(
    host.requests.map(({ verb, object }) => `${verb} ${object}`),
    ["create team-a/settings", "create team-b/settings"],
  );
  assert.deepEqual(host.requests[0]?.body, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "settings",
      namespace: "team-a",
      labels: { "app.kubernetes.io/managed-by": "oarlock-mirror" },
      annotations: { "oarlock.dev/mirrored-from": "home/settings" },
    },
    data: { a: "1" },
  });
});

test("a change of the source changes the copies, and removes its fields from them", () => {
  const host = newHost();
  host.added("configmap-sources", source("team-a", { a: "1", b: "2" }));
  host.updated("configmap-sources", source("team-a", { a: "one" }));
  assert.deepEqual(host.requests.at(-1)?.body, { data: { b: null, a: "one" } });
  assert.deepEqual(copyIn(host, "team-a")?.data, { a: "one" });
});

test("copies go with their target and with their source", () => {
  const host = newHost();
  host.added("configmap-sources", source("team-a,team-b"));
  host.updated("configmap-sources", source("team-b"));
  assert.equal(copyIn(host, "team-a"), undefined);
  assert.ok(copyIn(host, "team-b"));
  host.deleted("configmap-sources", SETTINGS);
  assert.equal(copyIn(host, "team-b"), undefined);
});

test("a deleted copy is restored, and a copy whose source is gone is deleted after a start", () => {
  const host = newHost();
  host.added("configmap-sources", source("team-a"));
  host.deleted("configmap-copies", { namespace: "team-a", name: "settings" });
  assert.ok(copyIn(host, "team-a"));
  host.remove("v1/configmaps", SETTINGS);
  host.synced("configmap-copies", 1);
  assert.ok(copyIn(host, "team-a"), "other watches have not synced");
  host.synced("namespaces", 0);
  assert.equal(copyIn(host, "team-a"), undefined);
});

test("an object of another owner is not overwritten", () => {
  const host = newHost();
  host.put("v1/configmaps", {
    metadata: { namespace: "team-a", name: "settings" },
    data: { mine: "1" },
  } as Copied);
  host.added("configmap-sources", source("team-a"));
  assert.deepEqual(copyIn(host, "team-a")?.data, { mine: "1" });
  assert.deepEqual(host.events, [
    {
      type: "warning",
      reason: "MirrorRefused",
      regarding: "ConfigMap home/settings",
      note: "ConfigMap team-a/settings exists and is not a copy of this object",
    },
  ]);
});

test("a Secret of another type is deleted, since its type cannot be changed", () => {
  const host = newHost();
  const secret = (type: string): Copied => ({ ...source("team-a"), type });
  host.added("secret-sources", secret("Opaque"));
  host.updated("secret-sources", secret("kubernetes.io/tls"));
  const copy = { namespace: "team-a", name: "settings" };
  assert.equal(host.requests.find(({ verb }) => verb === "delete")?.object, "team-a/settings");
  assert.equal(host.get<Copied>("v1/secrets", copy)?.type, "kubernetes.io/tls");
});

test("a copy that has changed meanwhile is a retry", () => {
  const host = newHost();
  host.added("configmap-sources", source("team-a"));
  host.fail("client.patch", new ConflictError("team-a/settings has changed"));
  assert.throws(() => host.updated("configmap-sources", source("team-a", { a: "2" })), Retry);
});

test("a new namespace gets its copies, at once or after the initial ones", () => {
  const host = newHost();
  host.added("configmap-sources", source("*"));
  host.added("namespaces", { metadata: { name: "team-c" } });
  assert.ok(copyIn(host, "team-c"));
  host.added("namespaces", { metadata: { name: "team-d" } }, { isInitial: true });
  assert.deepEqual(host.queue, [{ kind: "all-sources", namespace: "", name: "", afterMs: 1_000 }]);
  host.reconcile({ kind: "all-sources" });
  assert.ok(copyIn(host, "team-d"));
});

test("a wrong configuration stops the load", () => {
  assert.throws(
    () => new FakeHost(plugin, { config: { excludedNamespaces: "a" } }),
    /is not a list of names/,
  );
});
