import assert from "node:assert/strict";
import test from "node:test";
import { FakeHost } from "@oarlock/sdk/testing";
import * as plugin from "../plugin.ts";

test("an object is reconciled as long as it is there", () => {
  const host = new FakeHost(plugin);
  const key = { kind: "objects", namespace: "default", name: "web" };
  host.put("apps/v1/deployments", { metadata: { namespace: "default", name: "web" } });
  host.reconcile(key);
  host.remove("apps/v1/deployments", key);
  host.reconcile(key);
  assert.deepEqual(
    host.logs.map(({ message, pairs }) => [message, pairs.name]),
    [
      ["reconciled", "web"],
      ["gone", "web"],
    ],
  );
});
