// The values of a watch's declared fields, which a notification carries as JSON texts.

import type { EventObject } from "./event.js";
import type { Fields, FieldValues } from "./pointer.js";
import { parseField } from "./rows.js";

type Text = string | null | undefined;

/** Makes the values of one notification. */
export type DeclaredFields = new (
  texts: readonly Text[],
  object: EventObject<unknown>,
) => FieldValues<unknown, Fields>;

/** Returns a class whose properties are the declared fields. Each is parsed when it is first read. */
export function declaredFields(fields: Fields): DeclaredFields {
  const pointers = Object.entries(fields);

  class Values {
    readonly #texts: readonly Text[];
    readonly #object: EventObject<unknown>;
    readonly #parsed: unknown[] = [];

    constructor(texts: readonly Text[], object: EventObject<unknown>) {
      this.#texts = texts;
      this.#object = object;
      // Own properties, so that a copy has them.
      Object.defineProperties(this, properties);
    }

    static value(values: Values, n: number, pointer: string): unknown {
      const parsed = values.#parsed;
      if (n in parsed) return parsed[n];
      // The host sends no values if they are too long together. Then each is read.
      const isSent = values.#texts.length > 0;
      parsed[n] = isSent ? parseField(values.#texts[n]) : values.#object.field(pointer);
      return parsed[n];
    }

    toJSON(): object {
      return Object.fromEntries(pointers.map(([name, pointer], n) => [name, Values.value(this, n, pointer)]));
    }
  }

  const properties = Object.fromEntries(
    pointers.map(([name, pointer], n) => {
      const get = function (this: Values) {
        return Values.value(this, n, pointer);
      };
      return [name, { enumerable: true, get }];
    }),
  );
  return Values as unknown as DeclaredFields;
}
