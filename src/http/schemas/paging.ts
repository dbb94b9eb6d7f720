import Type, { type TSchema } from 'typebox';

/** `after` and `limit` of every list. */
export const PageQuery = Type.Object(
  {
    after: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Only items behind the one with this id.' }),
    ),
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Items on a page, at most.' }),
  },
  { additionalProperties: false },
);

/** A page of `items`, oldest first; `nextCursor` is the `after` of the next page, null at the end. */
export function pageSchema<T extends TSchema>(name: string, item: T) {
  return Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()]),
    },
    { $id: name, additionalProperties: false },
  );
}

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, UTC, milliseconds.',
});

export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}
