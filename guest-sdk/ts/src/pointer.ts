// JSON pointers (RFC 6901), and the types of the values that they point to.

import { text } from "./conversion.js";

/**
 * The type of the value at a JSON pointer in an object of the type `T`; `unknown` where `T` does not say it,
 * or the pointer is not a literal. The field may be missing in any object, so the value may be `undefined`.
 */
export type ValueAt<T, P extends string> = string extends P
  ? unknown
  : P extends ""
    ? T
    : P extends `/${infer Rest}`
      ? At<T, Rest>
      : never;

type At<T, P extends string> = P extends `${infer Head}/${infer Tail}`
  ? At<Member<NonNullable<T>, Unescaped<Head>>, Tail>
  : Member<NonNullable<T>, Unescaped<P>>;

type Member<T, K extends string> = unknown extends T
  ? unknown
  : T extends readonly (infer Element)[]
    ? Element
    : K extends keyof T
      ? NonNullable<T[K]>
      : string extends keyof T
        ? NonNullable<T[keyof T]>
        : unknown;

type Unescaped<S extends string> = S extends `${infer Before}~1${infer After}`
  ? `${Before}/${Unescaped<After>}`
  : S extends `${infer Before}~0${infer After}`
    ? `${Before}~${Unescaped<After>}`
    : S;

type Escaped<S extends string> = S extends `${infer Before}~${infer After}`
  ? `${EscapedSlashes<Before>}~0${Escaped<After>}`
  : EscapedSlashes<S>;

type EscapedSlashes<S extends string> = S extends `${infer Before}/${infer After}`
  ? `${Before}~1${EscapedSlashes<After>}`
  : S;

type Joined<Segments extends readonly string[]> = Segments extends readonly [
  infer First extends string,
  ...infer Others extends readonly string[],
]
  ? `/${Escaped<First>}${Joined<Others>}`
  : "";

declare const VALUE: unique symbol;

/** A JSON pointer to a value of the type `V`. */
export type Pointer<V> = string & { readonly [VALUE]: V };

/** Returns the JSON pointer with these segments: `pointer("data", "a/b")` is `/data/a~1b`. */
export function pointer<const Segments extends readonly string[]>(...segments: Segments): Joined<Segments> {
  const escaped = segments.map((segment) => `/${escapeSegment("a segment of pointer", segment)}`);
  return escaped.join("") as Joined<Segments>;
}

/** Returns the JSON pointer to a label. */
export function label<const Name extends string>(name: Name): `/metadata/labels/${Escaped<Name>}` {
  return `/metadata/labels/${escapeSegment("the argument name of label", name)}` as `/metadata/labels/${Escaped<Name>}`;
}

/** Returns the JSON pointer to an annotation. */
export function annotation<const Name extends string>(name: Name): `/metadata/annotations/${Escaped<Name>}` {
  return `/metadata/annotations/${escapeSegment("the argument name of annotation", name)}` as `/metadata/annotations/${Escaped<Name>}`;
}

/**
 * Returns the same JSON pointer, with the type of its value: `at<number>("/spec/replicas")`. Nothing
 * checks it.
 */
export function at<V>(pointer: string): Pointer<V> {
  return pointer as Pointer<V>;
}

/** Fields by name: JSON pointers. */
export type Fields = { readonly [name: string]: string };

/** The values of fields. A field that the object lacks, or that is null, is `undefined`. */
export type FieldValues<T, F extends Fields> = {
  readonly [Name in keyof F]: FieldValue<T, F[Name]> | undefined;
};

/** The type of the value of one field. */
export type FieldValue<T, P extends string> = P extends Pointer<infer V> ? V : ValueAt<T, P>;

function escapeSegment(what: string, segment: string): string {
  return text(what, segment).replaceAll("~", "~0").replaceAll("/", "~1");
}
