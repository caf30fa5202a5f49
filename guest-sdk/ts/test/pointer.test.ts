import assert from "node:assert/strict";
import test from "node:test";
import { annotation, at, type FieldValues, label, pointer, type ValueAt } from "@oarlock/sdk";
import type { Pod } from "kubernetes-types/core/v1";

/** Compiles only if both types are the same. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : ["differs", A, B];
function typeIs<_Checked extends true>(): void {}

test("segments of pointers are escaped", () => {
  assert.equal(pointer("data", "a/b~c"), "/data/a~1b~0c");
  assert.equal(annotation("oarlock.dev/ttl"), "/metadata/annotations/oarlock.dev~1ttl");
  assert.equal(label("app"), "/metadata/labels/app");
});

test("the type of a value follows from the pointer", () => {
  typeIs<Same<ValueAt<Pod, "/spec/nodeName">, string>>();
  typeIs<Same<ValueAt<Pod, "/spec/containers/0/image">, string>>();
  typeIs<Same<ValueAt<Pod, "/metadata/labels/app">, string>>();
  typeIs<Same<ValueAt<Pod, "/status/phase/deeper">, unknown>>();
  typeIs<Same<ValueAt<Pod, string>, unknown>>();
  const ttl = annotation("oarlock.dev/ttl");
  typeIs<Same<typeof ttl, "/metadata/annotations/oarlock.dev~1ttl">>();
  const fields = { phase: "/status/phase", ttl, replicas: at<number>("/spec/replicas") } as const;
  typeIs<
    Same<
      FieldValues<Pod, typeof fields>,
      {
        readonly phase: string | undefined;
        readonly ttl: string | undefined;
        readonly replicas: number | undefined;
      }
    >
  >();
});
