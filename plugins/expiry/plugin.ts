// Deletes objects whose time to live has passed: `oarlock.dev/ttl: 30m`, counted from their creation.
//
// An object is a key in the work queue. `reconcile` reads it from the cache, and asks to be called again
// when its time has passed. So the plugin keeps no state: after a restart every annotated object is a key
// again.

import {
  annotation,
  client,
  clock,
  config,
  events,
  lister,
  log,
  metrics,
  parseDuration,
  plugin,
  type Requeue,
  type Resource,
  requeueAfter,
  resource,
  watch,
} from "@oarlock/sdk";

const TTL = annotation("oarlock.dev/ttl");

/**
 * The resources without a setting, by kind: what tests and jobs leave behind. README.md says why no
 * others.
 */
const DEFAULT_RESOURCES = { ConfigMap: "v1/configmaps", Job: "batch/v1/jobs" };

/** What decides whether an object is deleted, and when. */
const FIELDS = {
  ttl: TTL,
  created: "/metadata/creationTimestamp",
  deleted: "/metadata/deletionTimestamp",
} as const;

export const { metadata, reconciler } = plugin(() => {
  const resources = resourcesOfConfig();
  const listers = new Map(
    resources.map((of) => [of.kind, lister(of, { name: `${of.kind}`, content: "metadata" })]),
  );
  const watches = resources.map((of) => {
    const conditions = [{ at: TTL, exists: true }];
    return [of.kind, watch(of, { conditions, fields: FIELDS, content: "metadata", enqueue: "itself" })];
  });
  return {
    name: "expiry",
    version: "0.1.0",
    stateless: true,
    watches: Object.fromEntries(watches),
    listers: [...listers.values()],
    requests: resources.map((of) => ({ to: of, verbs: ["delete"] })),

    reconcile({ kind, namespace, name }): Requeue | undefined {
      const cached = listers.get(kind);
      const row = cached?.get({ namespace, name }, { fields: FIELDS });
      if (!cached || !row) return undefined;
      const { ttl, created, deleted } = row.fields;
      if (ttl === undefined || created === undefined || deleted !== undefined) return undefined;

      const duration = durationOf(ttl);
      if (duration instanceof RangeError) {
        events.warning(cached.resource, row, "InvalidTTL", `${duration.message}; the object is not deleted`);
        return undefined;
      }
      const left = Date.parse(created) + duration - clock.now().getTime();
      if (left > 0) return requeueAfter(left);

      // An object whose annotation has changed meanwhile is a conflict, and read again.
      client.delete(cached.resource, row, { preconditions: row });
      log.info("deleted", { kind, namespace, name, ttl });
      metrics.add("objects_deleted", 1, { kind });
      return undefined;
    },
  };
});

function durationOf(ttl: string): number | RangeError {
  try {
    return parseDuration(ttl);
  } catch (error) {
    if (error instanceof RangeError) return error;
    throw error;
  }
}

/** Returns the resources to watch: `resources` in the configuration, paths by kind. */
function resourcesOfConfig(): Resource[] {
  const named: unknown = config.get("/resources") ?? DEFAULT_RESOURCES;
  if (
    typeof named !== "object" ||
    named === null ||
    Array.isArray(named) ||
    Object.keys(named).length === 0
  ) {
    throw new Error("resources in the configuration is not a map such as {ConfigMap: v1/configmaps}");
  }
  return Object.entries(named).map(([kind, path]) => resource(String(path), kind));
}
