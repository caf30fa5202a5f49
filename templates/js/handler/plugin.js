// Logs the objects of a resource when they appear, change and go.

import * as event from "oarlock:plugin/event@0.1.0";
import * as log from "oarlock:plugin/log@0.1.0";

export const metadata = {
  // Says what the plugin watches. The host asks when it loads the plugin.
  describe() {
    return {
      name: "my-plugin",
      version: "0.1.0",
      subscriptions: [
        {
          name: "objects",
          target: { group: "apps", version: "v1", plural: "deployments" },
          namespaces: { tag: "all" },
          labelSelector: "",
          conditions: [],
          fields: [],
          content: "full",
          resyncSeconds: 0,
          enqueue: { tag: "nothing" },
          ignoreOwnWrites: false,
        },
      ],
      reads: [],
      indices: [],
      requests: [],
      schedules: [],
      stateless: true,
    };
  },
};

export const handler = {
  onAdd({ object }) {
    // Fields are read by their JSON pointers, as JSON text.
    const created = retried(() => event.field("new", "/metadata/creationTimestamp"));
    info("added", { namespace: object.namespace, name: object.name, created: created ?? "" });
  },

  onUpdate({ object }) {
    info("updated", { namespace: object.namespace, name: object.name });
  },

  onDelete({ object }) {
    info("deleted", { namespace: object.namespace, name: object.name });
  },

  // All objects that existed when the plugin started have been handled.
  onSynced() {},
};

// Writes a line to the log of the plugin.
function info(message, pairs) {
  log.log("info", message, Object.entries(pairs).map(([name, value]) => ({ name, value })));
}

// Calls the host. After an error of the host, it calls again with the same object, later.
function retried(call) {
  try {
    return call();
  } catch (error) {
    const reason = error.payload ?? String(error);
    throw { tag: "retry", val: JSON.stringify(reason) };
  }
}
