// The host of a component: the imports of the contract. In Node.js `fake.ts` takes the place of this module.

export * as cache from "oarlock:plugin/cache@0.1.0";
export * as client from "oarlock:plugin/client@0.1.0";
export * as clock from "oarlock:plugin/clock@0.1.0";
export * as config from "oarlock:plugin/config@0.1.0";
export * as event from "oarlock:plugin/event@0.1.0";
export * as events from "oarlock:plugin/events@0.1.0";
export * as log from "oarlock:plugin/log@0.1.0";
export * as metrics from "oarlock:plugin/metrics@0.1.0";
export * as workQueue from "oarlock:plugin/work-queue@0.1.0";

/** Returns the number of the instance: what is kept for one instance is dropped for another. */
export function instance(): number {
  return 0;
}
