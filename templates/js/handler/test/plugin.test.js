import assert from "node:assert/strict";
import test from "node:test";
import { FakeHost } from "@oarlock/sdk/testing";
import * as plugin from "../plugin.js";

test("an object is logged when it appears and when it goes", () => {
  const host = new FakeHost(plugin);
  host.added("objects", { metadata: { namespace: "default", name: "web" } });
  host.deleted("objects", { namespace: "default", name: "web" });
  assert.deepEqual(
    host.logs.map(({ message, pairs }) => [message, pairs.name]),
    [
      ["added", "web"],
      ["deleted", "web"],
    ],
  );
});
