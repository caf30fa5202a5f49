// Tests of plugins in Node.js, without a component: a host with an API server and caches in memory.

/// <reference path="../../types/plugin.d.ts" preserve="true" />

export { FakeHost, type FakeHostOptions, type TestedPlugin } from "./fake-host.js";
export type { LogLine, QueuedKey, RecordedEvent, SentRequest } from "./recorded.js";
