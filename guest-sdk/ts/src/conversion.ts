// Conversions of values for the host. The contract's types hold there, and nothing else checks them: a value
// of another type ends the instance with a trap. Each function here throws an error instead, which names the
// value, what was given and what to give.

/** The greatest number that reaches the host: the engine takes numbers of the contract for signed ones. */
export const MAX_NUMBER = 0x7fff_ffff;

/** The greatest integer of 64 bits, as JavaScript rounds it. Kubernetes has no greater integers. */
const MAX_INTEGER = 2 ** 63;

/** Begins the digits of a BigInt until its quotes are removed. No text has it: half a surrogate pair. */
const BIG = "\ud800";
const QUOTED_BIG = /"\\ud800(-?\d+)"/g;

/** The length up to which a message shows a text. */
const LONGEST_SHOWN = 100;

/** Returns a text that names something, such as a key, a pointer or a selector. */
export function text(what: string, value: unknown, wanted = "a text"): string {
  if (typeof value !== "string") throw wrongType(what, value, wanted);
  if (value.isWellFormed()) return value;
  throw new RangeError(`${what} is ${shown(value)}; give a text without half a surrogate pair`);
}

/** Returns a text for people. It has U+FFFD in place of half a surrogate pair. */
export function message(what: string, value: unknown): string {
  if (typeof value !== "string") throw wrongType(what, value, "a text");
  return value.toWellFormed();
}

/** Returns the text of any value, for logs and failures. Never throws. */
export function anyText(value: unknown): string {
  try {
    return String(value).toWellFormed();
  } catch {
    return tagOf(value);
  }
}

/** Returns the text of an object without a prototype, or of one whose `toString` throws. */
function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value).toWellFormed();
  } catch {
    // Its tag has a getter that throws, or it is a revoked proxy.
    return "[object]";
  }
}

/** Returns a whole number, 0 or more. */
export function u32(what: string, value: unknown): number {
  if (typeof value !== "number") throw wrongType(what, value, "a number");
  if (!(Number.isInteger(value) && value >= 0 && value <= MAX_NUMBER)) {
    throw new RangeError(`${what} is ${value}; give a whole number, 0 to ${MAX_NUMBER}`);
  }
  return value;
}

/** Returns a number. */
export function f64(what: string, value: unknown): number {
  if (typeof value !== "number") throw wrongType(what, value, "a number");
  return value;
}

/** Returns a boolean: other values are not taken for true or false. */
export function boolean(what: string, value: unknown): boolean {
  if (typeof value !== "boolean") throw wrongType(what, value, "true or false");
  return value;
}

/** Returns one of several names. */
export function oneOf<Name extends string>(what: string, value: unknown, names: readonly Name[]): Name {
  const found = names.find((name) => name === value);
  if (found === undefined) throw wrongType(what, value, `one of ${names.join(", ")}`);
  return found;
}

/** Returns an object that is no list. */
export function object<T extends object>(what: string, value: T, wanted = "an object"): T {
  if (!isObject(value)) throw wrongType(what, value, wanted);
  return value;
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a list. */
export function list<T>(what: string, value: readonly T[], wanted = "a list"): readonly T[] {
  if (!Array.isArray(value)) throw wrongType(what, value, wanted);
  return value;
}

/** Returns a list of texts. It may be given as a set or another iterable, but not as a text. */
export function texts(what: string, value: Iterable<string>): string[] {
  if (!isIterable(value)) throw wrongType(what, value, "a list of texts");
  return Array.from(value, (item, n) => text(`the member ${n} of ${what}`, item));
}

function isIterable(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === "function";
}

/**
 * Returns the JSON pointers of fields, in the order of their names. The fields are an option or argument of
 * something. Reads call this, so it makes no text but for an error.
 */
export function pointers(
  role: "option" | "argument",
  of: string,
  fields: Readonly<Record<string, string>>,
): string[] {
  if (!isObject(fields)) {
    throw wrongType(`the ${role} fields of ${of}`, fields, 'an object such as { phase: "/status/phase" }');
  }
  return Object.values(fields).map((at, n) => {
    if (isText(at)) return at;
    return text(`the field ${Object.keys(fields)[n]}`, at, 'a JSON pointer such as "/status/phase"');
  });
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.isWellFormed();
}

/** Throws unless a value is a function, `undefined` or `null`. */
export function callback(what: string, value: unknown): void {
  if (value != null && typeof value !== "function") throw wrongType(what, value, "a function");
}

/**
 * Returns the JSON text of a value, in which a BigInt is a number.
 *
 * Throws a `RangeError` for what JSON cannot say, and for an integer that JavaScript may have rounded when
 * it read an object: its write would change a field that the plugin did not change.
 */
export function json(what: string, value: unknown): string {
  let hasBig = false;
  const written: string | undefined = JSON.stringify(value, (name: string, part: unknown) => {
    if (!name.isWellFormed()) text(`a name in ${what}`, name);
    if (typeof part === "string" && !part.isWellFormed()) text(place(what, name), part);
    if (typeof part === "number") checkNumber(what, name, part);
    if (typeof part !== "bigint") return part;
    hasBig = true;
    return `${BIG}${part}`;
  });
  if (written === undefined) throw wrongType(what, value, "a JSON value");
  return hasBig ? written.replace(QUOTED_BIG, "$1") : written;
}

function checkNumber(what: string, name: string, number: number): void {
  if (!Number.isFinite(number)) {
    throw new RangeError(`${place(what, name)} is ${number}, which JSON does not have; give a finite number`);
  }
  if (Number.isInteger(number) && !Number.isSafeInteger(number) && Math.abs(number) <= MAX_INTEGER) {
    throw new RangeError(
      `${place(what, name)} is ${number}; JavaScript rounds integers beyond 2^53, so the object may have had ` +
        "another one: change the other fields with client.patch, or give a BigInt",
    );
  }
}

function place(what: string, name: string): string {
  return name === "" ? what : `the member ${name} in ${what}`;
}

/** Returns the error for a value of a wrong type. */
export function wrongType(what: string, value: unknown, wanted: string): TypeError {
  return new TypeError(`${what} is ${shown(value)}; give ${wanted}`);
}

/** Returns what a message says of a value. */
export function shown(value: unknown): string {
  switch (typeof value) {
    case "string": {
      const isLong = value.length > LONGEST_SHOWN;
      return isLong ? `${JSON.stringify(value.slice(0, LONGEST_SHOWN))}…` : JSON.stringify(value);
    }
    case "number":
    case "bigint":
    case "boolean":
      return `the ${typeof value} ${value}`;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "a list" : "an object";
    case "undefined":
      return "undefined";
    default:
      return `a ${typeof value}`;
  }
}
