// Reconciles the objects of a resource: compares what is with what should be, and logs it.

import * as cache from "oarlock:plugin/cache@0.1.0";
import * as log from "oarlock:plugin/log@0.1.0";

const RESOURCE = { group: "apps", version: "v1", plural: "deployments" };

export const metadata = {
  // Says what the plugin watches and reads. The host asks when it loads the plugin.
  describe() {
    return {
      name: "my-plugin",
      version: "0.1.0",
      subscriptions: [
        {
          name: "objects",
          target: RESOURCE,
          namespaces: { tag: "all" },
          labelSelector: "",
          conditions: [],
          fields: [],
          content: "full",
          resyncSeconds: 0,
          enqueue: { tag: "itself" },
          ignoreOwnWrites: false,
        },
      ],
      reads: [{ name: "objects", target: RESOURCE, namespaces: { tag: "all" }, content: "full", wakes: false }],
      indices: [],
      requests: [],
      schedules: [],
      stateless: true,
    };
  },
};

export const reconciler = {
  // Is called for an object after it appeared, changed or went.
  reconcile({ object }) {
    const row = find(object);
    if (row === undefined) {
      info("gone", { namespace: object.namespace, name: object.name });
    } else {
      // Fields are JSON text.
      info("reconciled", { namespace: object.namespace, name: object.name, created: row.fields[0] ?? "" });
    }
    return { tag: "done" };
  },
};

// Reads an object from the cache, if it is there. After another error the host calls again, later.
function find(object) {
  try {
    return cache.get("objects", object, { tag: "fields", val: ["/metadata/creationTimestamp"] });
  } catch (thrown) {
    const error = thrown.payload;
    if (error?.tag === "not-found") return undefined;
    throw { tag: "retry", val: JSON.stringify(error ?? String(thrown)) };
  }
}

// Writes a line to the log of the plugin.
function info(message, pairs) {
  log.log("info", message, Object.entries(pairs).map(([name, value]) => ({ name, value })));
}
