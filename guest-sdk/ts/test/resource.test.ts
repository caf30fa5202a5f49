import assert from "node:assert/strict";
import test from "node:test";
import { client, events, lister, plugin, type Resource, resource, watch } from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";
import type { ConfigMap } from "kubernetes-types/core/v1";

const PATH = "v1/configmaps";
const key = { namespace: "home", name: "a" };

/** The functions of `client`, each with a resource and arguments that fit. */
const calls: Record<string, (of: Resource | string) => unknown> = {
  get: (of) => client.get(of, key),
  list: (of) => [...client.list(of)],
  create: (of) => client.create(of, { metadata: { namespace: "home", name: "b" } }),
  apply: (of) => client.apply(of, { metadata: key, data: { a: "1" } }),
  patch: (of) => client.patch(of, key, {}),
  replace: (of) => client.replace(of, { metadata: key }),
  status: (of) => client.status(of, key, {}),
  scale: (of) => client.scale(of, key, 1),
  delete: (of) => client.delete(of, key),
};

/** What is neither a resource nor a text, with the words that a message has for it. */
const wrong: [unknown, string][] = [
  [undefined, "undefined"],
  [null, "null"],
  [7, "a number"],
  [{}, "an object without group, version and plural"],
  [{ version: "v1", plural: "pods" }, "an object without group, version and plural"],
  [{ group: "", version: "v1", plural: "" }, "an object without group, version and plural"],
  [lister("v1/pods"), "an object without group, version and plural"],
];

/** Runs a body as the `reconcile` of a plugin, and returns the verbs and resources of its requests. */
function inPlugin(body: (host: FakeHost) => void): string[] {
  const listers = [lister("v1/pods")];
  const host: FakeHost = new FakeHost(
    plugin({ name: "a", version: "1", listers, reconcile: () => body(host) }),
  );
  host.put(PATH, { metadata: key });
  host.reconcile({ kind: "any" });
  return host.requests.map(({ verb, resource }) => `${verb} ${resource}`);
}

test("every function of the client takes a resource as text", () => {
  const sent = (of: Resource | string) =>
    inPlugin(() => {
      for (const call of Object.values(calls)) call(of);
    });
  const requests = sent(PATH);
  assert.deepEqual(requests, sent(resource(PATH)));
  assert.deepEqual(requests, [
    `create ${PATH}`,
    `apply ${PATH}`,
    `patch ${PATH}`,
    `replace ${PATH}`,
    `patch ${PATH}/status`,
    `patch ${PATH}/scale`,
    `delete ${PATH}`,
  ]);
});

test("what a text names is read as such", () => {
  inPlugin(() => {
    assert.equal(client.get(PATH, key)?.metadata?.name, "a");
    const [row] = client.list(PATH, { fields: { name: "/metadata/name" } });
    const name: string | undefined = row?.fields.name;
    assert.equal(name, "a");
    const data: ConfigMap["data"] = client.get<ConfigMap>(PATH, key)?.data;
    assert.equal(data, undefined);
    client.apply(PATH, { apiVersion: "v1", kind: "ConfigMap", metadata: key, data: { a: "1" } });
    assert.deepEqual(client.get<ConfigMap>(PATH, key)?.data, { a: "1" });
    assert.throws(
      () => client.get("configmaps", key),
      /^TypeError: "configmaps" is not a resource such as v1/,
    );
  });
});

test("the client names the argument that is no resource", () => {
  const requests = inPlugin(() => {
    for (const [name, call] of Object.entries(calls)) {
      for (const [given, shown] of wrong) {
        const message = `the argument resource of client.${name} is ${shown}; give a text such as "v1/pods", `;
        assert.throws(
          () => call(given as Resource),
          (error) => error instanceof TypeError && error.message.startsWith(message),
        );
      }
    }
  });
  assert.deepEqual(requests, [], "no request was sent");
});

test("declarations and Events name what is no resource, too", () => {
  for (const [given, shown] of wrong) {
    const of = given as Resource;
    const refused = (what: string) => ({
      name: "TypeError",
      message: new RegExp(`^${what} is ${shown}; give`),
    });
    assert.throws(() => watch(of), refused("the resource of a watch"));
    assert.throws(() => lister(of), refused("the resource of a lister"));
    assert.throws(() => resource(given as string), /^TypeError: the argument path of resource is /);
    assert.throws(() => events.normal(of, key, "A", ""), refused("the argument resource of events.normal"));
    const requests = [{ to: of, verbs: ["get" as const] }];
    const tested = plugin({ name: "a", version: "1", requests, reconcile() {} });
    assert.throws(() => new FakeHost(tested), /the member to of a request is /);
  }
  const text = PATH as unknown as Resource<object>;
  assert.throws(
    () => events.warning(text, key, "A", ""),
    /^TypeError: an Event needs the kind of v1\/configmaps/,
  );
});
