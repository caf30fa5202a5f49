// The definition of a plugin, and its form in the contract.

import type {
  Description,
  Request as WitRequest,
  Schedule as WitSchedule,
} from "oarlock:plugin/metadata@0.1.0";
import { present } from "./choice.js";
import { boolean, callback, list, object, text, texts, wrongType } from "./conversion.js";
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
  callback("the member reconcile of the plugin", definition.reconcile);
  const reads = list("the listers of the plugin", listers).map((lister, n) => {
    return made(`the lister ${n} of the plugin`, lister, "what lister(…) returns").declared();
  });
  const watched = Object.entries(object("the watches of the plugin", watches));
  const scheduled = Object.entries(object("the schedules of the plugin", schedules));
  return {
    name: text("the name of the plugin", name),
    version: text("the version of the plugin", version),
    subscriptions: watched.map(([name, watch]) => {
      return made(`the watch ${name}`, watch, "what watch(…) returns").declared(name);
    }),
    reads: reads.map(({ read }) => read),
    indices: reads.flatMap(({ indices }) => indices),
    requests: list("the requests of the plugin", requests).map(toRequest),
    schedules: scheduled.map(([name, schedule]) => toSchedule(name, schedule)),
    stateless: boolean("the member stateless of the plugin", stateless),
  };
}

/** Returns a watch or lister that a function of the SDK has made. */
function made<T extends Watch | Lister<object, string>>(what: string, given: T, wanted: string): T {
  if (typeof (given as Partial<T> | null | undefined)?.declared !== "function") {
    throw wrongType(what, given, wanted);
  }
  return given;
}

function toRequest(request: Request): WitRequest {
  const { to, verbs, namespace, subresource = "" } = object("a request of the plugin", request);
  const target = toTarget(resourceOf(to, "the member to of a request"));
  const what = `the request to ${target.plural}`;
  checkNames(what, request, REQUEST);
  return {
    target,
    namespaces: toNamespaces(what, namespace),
    verbs: texts(`the verbs of ${what}`, verbs),
    subresource: text(`the subresource of ${what}`, subresource),
  };
}

function toSchedule(name: string, given: Schedule): WitSchedule {
  const what = `the schedule ${name}`;
  checkNames(what, given, SCHEDULE);
  const schedule = present(given);
  if ("cron" in schedule === "every" in schedule) {
    throw new TypeError(`${what} needs one of every and cron`);
  }
  // An empty option of the contract is null in QuickJS, although the generated types say `undefined`.
  const key =
    schedule.key == null ? (null as unknown as undefined) : toWit(`the key of ${what}`, schedule.key);
  return {
    name: text("the name of a schedule", name),
    trigger: toTrigger(name, schedule),
    atStart: boolean(`the option atStart of ${what}`, schedule.atStart ?? false),
    key,
  } as WitSchedule;
}

function toTrigger(name: string, schedule: Schedule): WitSchedule["trigger"] {
  if ("every" in schedule) return { tag: "every-seconds", val: toInterval(name, schedule.every) };
  const { cron, timeZone = "" } = schedule;
  return {
    tag: "at",
    val: {
      cron: text(`the cron of the schedule ${name}`, cron),
      timeZone: text(`the timeZone of the schedule ${name}`, timeZone),
    },
  };
}

function toInterval(schedule: string, every: Duration): number {
  return toSeconds(`the interval of the schedule ${schedule}`, every, 1, MAX_EVERY_SECONDS);
}
