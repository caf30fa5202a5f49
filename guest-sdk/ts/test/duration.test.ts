import assert from "node:assert/strict";
import test from "node:test";
import type * as metadataExports from "oarlock:plugin/metadata@0.1.0";
import { type Duration, parseDuration, plugin, queue, RetryAfter, requeueAfter, watch } from "@oarlock/sdk";
import { FakeHost } from "@oarlock/sdk/testing";

test("durations are written as in Go, and in days", () => {
  assert.equal(parseDuration("500ms"), 500);
  assert.equal(parseDuration("1h30m"), 5_400_000);
  assert.equal(parseDuration("7d"), 604_800_000);
  assert.equal(parseDuration("1.5s"), 1_500);
  for (const text of ["", "30", "m", "-5m", "5 m", "5m5", "1w", "1..5s"]) {
    assert.throws(
      () => parseDuration(text),
      { name: "RangeError", message: /not a duration such as 30s/ },
      text,
    );
  }
});

test("a duration that the contract cannot hold is shortened", () => {
  assert.deepEqual(requeueAfter("100d"), { afterMs: 2 ** 31 - 1 });
  assert.equal(new RetryAfter("2h", "busy").afterMs, 3_600_000);
  assert.throws(() => requeueAfter(-1), RangeError);
  assert.throws(() => requeueAfter(Number.NaN), RangeError);
  const reconcile = () => queue.add({ kind: "later" }, { after: "50d" });
  const host = new FakeHost(plugin({ name: "a", version: "1", reconcile }));
  host.reconcile({ kind: "any" });
  assert.equal(host.queue[0]?.afterMs, 2 ** 31 - 1);
});

test("an interval is whole seconds, up to a year", () => {
  const described = (every: Duration, resync: Duration) => {
    const watches = { pods: watch("v1/pods", { resync }) };
    const tested = plugin({ name: "a", version: "1", watches, schedules: { report: { every } } });
    return (tested.metadata as typeof metadataExports).describe();
  };
  const { schedules, subscriptions } = described("365d", "100d");
  assert.deepEqual(schedules[0]?.trigger, { tag: "every-seconds", val: 31_536_000 });
  assert.equal(subscriptions[0]?.resyncSeconds, 8_640_000);

  for (const [every, seconds] of [
    ["1.1h", 3_960],
    ["16.1m", 966],
    ["4.1h", 14_760],
  ] as const) {
    assert.deepEqual(described(every, 0).schedules[0]?.trigger, { tag: "every-seconds", val: seconds });
  }

  const refused = (every: Duration, resync: Duration, message: string) =>
    assert.throws(
      () => described(every, resync),
      (thrown) => `${thrown}`.startsWith(`RangeError: ${message}\n`),
      message,
    );
  const schedule = "the interval of the schedule report is";
  const allowed = 'give whole seconds, 1 to 31536000, such as "90s"';
  for (const every of ["500ms", "1.5s", "0s", "366d", "999.5ms"] as const) {
    refused(every, 0, `${schedule} ${every}; ${allowed}`);
  }
  for (const every of [30, 0, -1_000, Number.NaN, Number.POSITIVE_INFINITY]) {
    refused(every, 0, `${schedule} ${every} ms; ${allowed}`);
  }
  const watched = 'the resync of the watch pods is 500ms; give whole seconds, 0 to 2147483647, such as "90s"';
  refused("1s", "500ms", watched);
});
