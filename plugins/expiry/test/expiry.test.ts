import assert from "node:assert/strict";
import test from "node:test";
import { ConflictError, Retry } from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import * as plugin from "../plugin.ts";

const KEY = { kind: "ConfigMap", namespace: "team-a", name: "scratch" };

/** Returns a host with one ConfigMap that was just created. */
function hostWith(ttl: string): FakeHost {
  const host = new FakeHost(plugin);
  annotate(host, ttl);
  return host;
}

function annotate(host: FakeHost, ttl: string): void {
  const annotations = { "oarlock.dev/ttl": ttl };
  host.put("v1/configmaps", { metadata: { namespace: "team-a", name: "scratch", annotations } });
}

test("an object is deleted when its time has passed, and not before", () => {
  const host = hostWith("1h30m");
  assert.equal(host.reconcile(KEY), 90 * 60_000);
  host.advance("89m");
  assert.equal(host.reconcile(KEY), 60_000);
  host.advance("1m");
  assert.equal(host.reconcile(KEY), undefined);
  assert.deepEqual(host.requests, [{ verb: "delete", resource: "v1/configmaps", object: "team-a/scratch" }]);
  assert.equal(host.get("v1/configmaps", KEY), undefined);
  assert.equal(host.metrics.get('objects_deleted{kind="ConfigMap"}'), 1);
  assert.equal(host.reconcile(KEY), undefined, "the object is gone");
});

test("a longer time keeps the object", () => {
  const host = hostWith("1h");
  host.advance("1h");
  annotate(host, "7d");
  assert.equal(host.reconcile(KEY), (7 * 24 - 1) * 3_600_000);
  assert.deepEqual(host.requests, []);
});

test("an invalid time gives one Event, and nothing is deleted", () => {
  for (const ttl of ["soon", "", "-1h", "10", "1w"]) {
    const host = hostWith(ttl);
    host.advance("40d");
    assert.equal(host.reconcile(KEY), undefined);
    const note = `${JSON.stringify(ttl)} is not a duration such as 30s, 10m, 12h or 7d; the object is not deleted`;
    assert.deepEqual(host.events, [
      { type: "warning", reason: "InvalidTTL", regarding: "ConfigMap team-a/scratch", note },
    ]);
    assert.deepEqual(host.requests, []);
  }
});

test("an object that is being deleted is left alone", () => {
  const host = new FakeHost(plugin);
  const metadata = { namespace: "team-a", name: "scratch", annotations: { "oarlock.dev/ttl": "1h" } };
  host.put("v1/configmaps", { metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } });
  host.advance("2h");
  assert.equal(host.reconcile(KEY), undefined);
  assert.deepEqual(host.requests, []);
});

test("an object that changes during the call is read again", () => {
  const host = hostWith("1h");
  host.advance("1h");
  host.fail("client.delete", new ConflictError("team-a/scratch has changed"));
  assert.throws(() => host.reconcile(KEY), Retry);
});

test("the configuration names the resources", () => {
  const resources = { Namespace: "v1/namespaces" };
  const host = new FakeHost(plugin, { config: { resources } });
  host.put("v1/namespaces", { metadata: { name: "preview", annotations: { "oarlock.dev/ttl": "1d" } } });
  host.advance("1d");
  host.reconcile({ kind: "Namespace", name: "preview" });
  assert.equal(host.get("v1/namespaces", { name: "preview" }), undefined);
  assert.throws(() => new FakeHost(plugin, { config: { resources: ["v1/pods"] } }), /is not a map such as/);
  assert.throws(
    () => new FakeHost(plugin, { config: { resources: { Pod: "pods" } } }),
    /"pods" is not a resource/,
  );
});
