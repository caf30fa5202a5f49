// Reconciles the objects of a resource: compares what is with what should be, and logs it.

import { lister, log, plugin, watch } from "@oarlock/sdk";

const objects = lister("apps/v1/deployments");

export const { metadata, reconciler } = plugin({
  name: "my-plugin",
  version: "0.1.0",
  stateless: true,
  watches: { objects: watch("apps/v1/deployments", { enqueue: "itself" }) },
  listers: [objects],

  // Is called for an object after it appeared, changed or went. After an exception the host calls again,
  // later.
  reconcile({ namespace, name }) {
    const found = objects.get({ namespace, name }, { fields: { created: "/metadata/creationTimestamp" } });
    if (found === undefined) {
      log.info("gone", { namespace, name });
    } else {
      log.info("reconciled", { namespace, name, created: found.fields.created });
    }
  },
});
