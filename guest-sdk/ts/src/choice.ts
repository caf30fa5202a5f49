// Objects that have one name out of several, such as the test of a condition.

import { checkNames } from "./names.js";

/** The type of the value of a name. */
export interface Value {
  is: string;
  fits(value: unknown): boolean;
}

export const TEXT: Value = { is: "a text", fits: (value) => typeof value === "string" };

/** What the names of a choice are called, and what to write instead of several of them. */
export interface Noun {
  one: string;
  instead: string;
}

/** Returns an object without the names whose value is `undefined`: they are absent. */
export function present<T extends object>(given: T): T {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as T;
}

/** Throws unless an object has one of the known names, with a value of its type, and no other name. */
export function checkChoice(
  what: string,
  given: object,
  known: Readonly<Record<string, Value>>,
  { one, instead }: Noun,
): void {
  checkNames(what, given, known, one);
  const [chosen, ...others] = Object.entries(present(given));
  if (chosen === undefined) {
    throw new TypeError(`${what} has no ${one}; the ${one}s are ${Object.keys(known).join(", ")}`);
  }
  if (others.length > 0) {
    const names = Object.keys(present(given)).join(", ");
    throw new TypeError(`${what} has several ${one}s (${names}); ${instead}`);
  }
  const [name, value] = chosen;
  const type = known[name];
  if (!type?.fits(value)) {
    throw new TypeError(`${what} has a wrong value for the ${one} ${name}; give ${type?.is}`);
  }
}
