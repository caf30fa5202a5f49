// The definition of a plugin, and its form in the contract.

import type {
  Description,
  Request as WitRequest,
  Schedule as WitSchedule,
} from "oarlock:plugin/metadata@0.1.0";
import { present } from "./choice.js";
import { type Duration, toSeconds } from "./duration.js";
import type { Lister } from "./lister.js";
import { checkNames } from "./names.js";
import type { Requeue } from "./plugin.js";
import { type PartialKey, toWit, type WorkKey } from "./queue.js";
import { type Resource, resourceOf, toNamespaces, toTarget } from "./resource.js";
import type { Watch } from "./watch.js";

/** A plugin: what it watches, reads and writes, and what it does. */
export interface Definition {
  name: string;
  version: string;
  /**
   * Whether the plugin can lose what it keeps between calls. The host may then run several instances of
   * it, and a new instance continues with the backlog. Any other plugin receives every object again in a
   * new instance.
   */
  stateless?: boolean;
  /** The watches, by name. */
  watches?: Readonly<Record<string, Watch>>;
  /** What the plugin reads from the cache. */
  listers?: readonly Lister<object, string>[];
  /** The requests that the plugin makes through `client`. `oarlock rbac` prints Roles for them. */
  requests?: readonly Request[];
  /** Times at which a key is added to the work queue, by name. */
  schedules?: Readonly<Record<string, Schedule>>;
  /** Makes the actual state match the state that the object named by the key asks for. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement is one.
  reconcile?(key: WorkKey): Requeue | void;
}

/** A kind of request: `{ to: pods, verbs: ["get", "delete"] }`. */
export interface Request {
  to: Resource<object> | string;
  /** Verbs of Kubernetes, such as `get`, `list`, `create`, `patch` (also for apply), `update`, `delete`. */
  verbs: readonly string[];
  /** One namespace; without it, all. */
  namespace?: string;
  /** A subresource such as `status`. */
  subresource?: string;
}

/** When a key is added, and which; without `key`, its kind is the schedule's name. */
export type Schedule = {
  /** Whether it is also added when the first version of the plugin begins to serve on a host. */
  atStart?: boolean;
  key?: PartialKey;
} & (
  | {
      /** Whole seconds, up to a year. */
      every: Duration;
    }
  | {
      /** Five fields: minute, hour, day of the month, month, day of the week. */
      cron: string;
      /** Such as `Europe/Berlin`; without it, UTC. */
      timeZone?: string;
    }
);

const OPTIONS: Record<keyof Definition, true> = {
  name: true,
  version: true,
  stateless: true,
  watches: true,
  listers: true,
  requests: true,
  schedules: true,
  reconcile: true,
};

const REQUEST: Record<keyof Request, true> = { to: true, verbs: true, namespace: true, subresource: true };

type ScheduleName<T = Schedule> = T extends object ? keyof T : never;

const SCHEDULE: Record<ScheduleName, true> = {
  atStart: true,
  key: true,
  every: true,
  cron: true,
  timeZone: true,
};

/** A year, the longest interval of a schedule. */
const MAX_EVERY_SECONDS = 31_536_000;

/** Returns the description that the host gets. */
export function describe(definition: Definition): Description {
  checkNames("the plugin", definition, OPTIONS);
  const {
    name,
    version,
    stateless = false,
    watches = {},
    listers = [],
    requests = [],
    schedules = {},
  } = definition;
  const reads = listers.map((lister) => lister.declared());
  return {
    name,
    version,
    subscriptions: Object.entries(watches).map(([name, watch]) => watch.declared(name)),
    reads: reads.map(({ read }) => read),
    indices: reads.flatMap(({ indices }) => indices),
    requests: requests.map(toRequest),
    schedules: Object.entries(schedules).map(([name, schedule]) => toSchedule(name, schedule)),
    stateless,
  };
}

function toRequest(request: Request): WitRequest {
  const { to, verbs, namespace, subresource = "" } = request;
  const target = toTarget(resourceOf(to, "the member to of a request"));
  checkNames(`the request to ${target.plural}`, request, REQUEST);
  return { target, namespaces: toNamespaces(namespace), verbs: [...verbs], subresource };
}

function toSchedule(name: string, given: Schedule): WitSchedule {
  const what = `the schedule ${name}`;
  checkNames(what, given, SCHEDULE);
  const schedule = present(given);
  if ("cron" in schedule === "every" in schedule) {
    throw new TypeError(`${what} needs one of every and cron`);
  }
  const trigger: WitSchedule["trigger"] =
    "cron" in schedule
      ? { tag: "at", val: { cron: schedule.cron, timeZone: schedule.timeZone ?? "" } }
      : { tag: "every-seconds", val: toInterval(name, schedule.every) };
  // An empty option of the contract is null in QuickJS, although the generated types say `undefined`.
  const key = schedule.key ? toWit(schedule.key) : (null as unknown as undefined);
  return { name, trigger, atStart: schedule.atStart ?? false, key } as WitSchedule;
}

function toInterval(schedule: string, every: Duration): number {
  return toSeconds(`the interval of the schedule ${schedule}`, every, 1, MAX_EVERY_SECONDS);
}
