// The exports of a component: the calls of the host, and what becomes of their results.

import type * as handlerExports from "oarlock:plugin/handler@0.1.0";
import type * as metadataExports from "oarlock:plugin/metadata@0.1.0";
import type * as reconcilerExports from "oarlock:plugin/reconciler@0.1.0";
import { instance } from "#host";
import { object, u32, wrongType } from "./conversion.js";
import { type Definition, describe } from "./definition.js";
import { type Duration, toMs } from "./duration.js";
import { during } from "./event.js";
import { failureOf, Terminal, withStack } from "./failure.js";
import { checkDeclared, noteCall } from "./lister.js";
import { fromWit } from "./queue.js";
import type { Watch } from "./watch.js";

/** What a plugin's main module exports: `metadata` always, `handler` and `reconciler` as its world says. */
export interface Exports {
  readonly metadata: object;
  readonly handler: object;
  readonly reconciler: object;
}

/** The result of a `reconcile` that is to be called again. */
export interface Requeue {
  readonly afterMs: number;
}

/**
 * Returns what `reconcile` returns to be called again with the same key: `return requeueAfter("10m")`.
 * After at most 24 days the host calls, also for a longer duration.
 */
export function requeueAfter(after: Duration): Requeue {
  return { afterMs: toMs("the argument after of requeueAfter", after) };
}

/** The number of plugins: one in a component, perhaps several in tests. */
let plugins = 0;

/**
 * Returns the exports of a plugin: `export const { metadata, handler } = plugin({ … })`.
 *
 * A function that returns the definition is called once in each instance, before its first call. It may
 * read the configuration. The rest of a module runs when the component is built, where there is no host.
 */
export function plugin(define: Definition | (() => Definition)): Exports {
  plugins += 1;
  let loaded: { definition: Definition; owner: number } | undefined;
  const definition = (): Definition => {
    noteCall();
    if (loaded?.owner !== instance()) {
      const given = typeof define === "function" ? define() : define;
      loaded = { definition: object("the definition of the plugin", given), owner: instance() };
    }
    return loaded.definition;
  };

  const metadata: typeof metadataExports = {
    describe() {
      try {
        const description = describe(definition());
        // A function may leave out listers as the configuration says.
        if (typeof define !== "function" && plugins === 1) checkDeclared(define.listers ?? []);
        return description;
      } catch (thrown) {
        throw withStack(thrown);
      }
    },
  };

  const notified = (name: string, method: string, notify: (watch: Watch) => unknown): void => {
    call(`${method} of the watch ${name}`, () => {
      const watch = definition().watches?.[name];
      if (watch === undefined) throw new Terminal(`the plugin has no watch ${name}`);
      return during(() => notify(watch));
    });
  };
  const handler: typeof handlerExports = {
    onAdd(event) {
      notified(event.subscription, "onAdd", ({ handlers, events }) => handlers.onAdd?.(events.added(event)));
    },
    onUpdate(event) {
      notified(event.subscription, "onUpdate", ({ handlers, events }) =>
        handlers.onUpdate?.(events.updated(event)),
      );
    },
    onDelete(event) {
      notified(event.subscription, "onDelete", ({ handlers, events }) =>
        handlers.onDelete?.(events.deleted(event)),
      );
    },
    onSynced({ subscription, remaining }) {
      notified(subscription, "onSynced", ({ handlers }) =>
        handlers.onSynced?.({ watch: subscription, remaining }),
      );
    },
  };

  const reconciler: typeof reconcilerExports = {
    reconcile(key) {
      const returned = call("reconcile", () => {
        const defined = definition();
        if (!defined.reconcile) throw new Terminal("the plugin has no `reconcile`");
        return defined.reconcile(fromWit(key));
      });
      return call("reconcile", () => toOutcome(returned));
    },
  };
  return { metadata, handler, reconciler };
}

/** Returns the outcome for what `reconcile` has returned, which is nothing or what `requeueAfter` returns. */
function toOutcome(returned: unknown): reconcilerExports.Outcome {
  // `return isLate && requeueAfter("1m")` returns false, and `return pending.length && …` returns 0.
  if (!returned) return { tag: "done" };
  const what = "what reconcile returned";
  if (typeof returned !== "object") throw wrongType(what, returned, 'nothing, or requeueAfter("10m")');
  return { tag: "requeue-after", val: u32(`the afterMs of ${what}`, (returned as Requeue).afterMs) };
}

/** Makes a call, and throws the failure of the contract for what it throws. */
function call<R>(name: string, make: () => R): R {
  try {
    const result = make();
    if (typeof (result as { then?: unknown } | undefined)?.then === "function") {
      throw new Terminal(
        `${name} returned a promise, which the host does not wait for: it must not be async`,
      );
    }
    return result;
  } catch (thrown) {
    throw failureOf(thrown);
  }
}
