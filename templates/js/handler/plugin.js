// Logs the objects of a resource when they appear, change and go.

import { log, plugin, watch } from "@oarlock/sdk";

export const { metadata, handler } = plugin({
  name: "my-plugin",
  version: "0.1.0",
  stateless: true,
  watches: {
    objects: watch("apps/v1/deployments", {
      onAdd({ object }) {
        // A field is read by its JSON pointer; `object.parse()` returns the whole object.
        const created = object.field("/metadata/creationTimestamp");
        log.info("added", { namespace: object.namespace, name: object.name, created });
      },

      onUpdate({ object }) {
        log.info("updated", { namespace: object.namespace, name: object.name });
      },

      onDelete({ object }) {
        log.info("deleted", { namespace: object.namespace, name: object.name });
      },
    }),
  },
});
