import assert from "node:assert/strict";
import test from "node:test";
import { lister, plugin } from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";

const pods = lister("v1/pods");
const secrets = lister("v1/secrets", { name: "passwords" });

test("a lister that the plugin does not declare is refused", () => {
  const listers = [pods];
  const tested = plugin({ name: "a", version: "1", listers });
  assert.throws(
    () => new FakeHost(tested),
    /TypeError: the lister passwords of v1\/secrets is not in `listers` of the plugin: add it\n/,
  );
  listers.push(secrets);
  // One that is made later counts no more: a handler may make it.
  lister("v1/nodes");
  new FakeHost(tested);
});
