// Names of options, for authors without a type checker.

import { object } from "./conversion.js";

/** Throws if an object has a name that is none of the known ones: a misspelt option would be ignored. */
export function checkNames(
  what: string,
  given: object,
  known: Readonly<Record<string, unknown>>,
  noun = "option",
): void {
  const unknown = Object.keys(object(what, given)).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return;
  const names = Object.keys(known).join(", ");
  throw new TypeError(`${what} has an unknown ${noun} ${unknown}; the ${noun}s are ${names}`);
}
