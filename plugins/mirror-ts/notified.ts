// One log line for each notification, so that tests can read which notifications the plugin received.

import { log, type ObjectRef } from "@oarlock/sdk";

/** Logs a notification. Handlers do it last, so that one that fails and is repeated is logged once. */
export function notified(type: string, watch: string, object?: ObjectRef, more?: log.Pairs): void {
  log.info("notified", {
    type,
    subscription: watch,
    namespace: object?.namespace,
    name: object?.name,
    uid: object?.uid,
    "resource-version": object?.resourceVersion,
    ...more,
  });
}
