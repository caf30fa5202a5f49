// The host of tests, in the place of `component.ts`: package.json selects this module in Node.js.

import type * as cacheImports from "oarlock:plugin/cache@0.1.0";
import type * as clientImports from "oarlock:plugin/client@0.1.0";
import type * as clockImports from "oarlock:plugin/clock@0.1.0";
import type * as configImports from "oarlock:plugin/config@0.1.0";
import type * as eventImports from "oarlock:plugin/event@0.1.0";
import type * as eventsImports from "oarlock:plugin/events@0.1.0";
import type * as logImports from "oarlock:plugin/log@0.1.0";
import type * as metricsImports from "oarlock:plugin/metrics@0.1.0";
import type * as workQueueImports from "oarlock:plugin/work-queue@0.1.0";

/** The imports of the contract. */
export interface Imports {
  readonly cache: typeof cacheImports;
  readonly client: typeof clientImports;
  readonly clock: typeof clockImports;
  readonly config: typeof configImports;
  readonly event: typeof eventImports;
  readonly events: typeof eventsImports;
  readonly log: typeof logImports;
  readonly metrics: typeof metricsImports;
  readonly workQueue: typeof workQueueImports;
}

let current: { imports: Imports; instance: number } | undefined;

/** Makes a fake host the one that plugins call. */
export function use(imports: Imports, instance: number): void {
  current = { imports, instance };
}

export const cache = imported("cache");
export const client = imported("client");
export const clock = imported("clock");
export const config = imported("config");
export const event = imported("event");
export const events = imported("events");
export const log = imported("log");
export const metrics = imported("metrics");
export const workQueue = imported("workQueue");

export function instance(): number {
  return current?.instance ?? 0;
}

/** Returns an interface whose functions are those of the fake host at the time of the call. */
function imported<Name extends keyof Imports>(name: Name): Imports[Name] {
  return new Proxy({} as Imports[Name], {
    get(_, member) {
      if (current === undefined) {
        throw new Error("there is no host: make one with `new FakeHost(plugin)` of @oarlock/sdk/testing");
      }
      return Reflect.get(current.imports[name], member);
    },
  });
}
