/**
 * What all wire shapes are made of. Every JSON shape that crosses the API is declared once, as a schema in this folder:
 * the server checks requests against it and documents it, and the types of the server, the client and the tests are
 * derived from it. The client imports the types alone, so that it loads no schema library.
 */
import Type, { type Static, type TSchema } from 'typebox';

/** The type of the values that a schema describes. They are read-only: nobody changes what was received or will be sent. */
export type Wire<Schema extends TSchema> = DeepReadonly<Static<Schema>>;

export type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** An object without members other than those declared. */
export const closed = { additionalProperties: false } as const;

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, in UTC, with milliseconds.',
});

/** Returns the schema of a value that may be null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** Returns the schema of one of several words. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  options: { description?: string } = {},
) {
  const union = Type.Union(
    words.map((word) => Type.Literal(word)),
    options,
  );
  return Type.Unsafe<Words[number]>(union);
}

/** The body of requests that need none: an empty object. */
export const EmptyBodySchema = Type.Object({}, closed);

/** The query of every list. */
export const PageQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'The `nextCursor` of the page before; omitted for the first page.',
      }),
    ),
    limit: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 50,
      description: 'The largest number of items to return.',
    }),
  },
  closed,
);

/** Returns the schema of a page of items, oldest first unless the operation says otherwise. */
export function pageSchema<T extends TSchema>(name: string, item: T) {
  return Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()], {
        description: 'The `after` of the next page; null when there are no more items.',
      }),
    },
    { $id: name, ...closed },
  );
}

/** Returns the schema of a list that always comes whole. */
export function listSchema<T extends TSchema>(name: string, item: T) {
  return Type.Object({ items: Type.Array(item) }, { $id: name, ...closed });
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The `after` of the next page; null when there are no more items. */
  readonly nextCursor: string | null;
}
