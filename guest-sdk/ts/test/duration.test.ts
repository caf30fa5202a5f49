import assert from "node:assert/strict";
import test from "node:test";
import { parseDuration, RetryAfter, requeueAfter } from "@oarlock/sdk";

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
  assert.deepEqual(requeueAfter("100d"), { afterMs: 2 ** 32 - 1 });
  assert.equal(new RetryAfter("2h", "busy").afterMs, 3_600_000);
  assert.throws(() => requeueAfter(-1), RangeError);
  assert.throws(() => requeueAfter(Number.NaN), RangeError);
});
