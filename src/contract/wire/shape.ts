/**
 * The parts of all wire shapes. Every JSON shape that crosses the API is declared once, as a schema in this folder: the server
 * checks requests against it and documents it, and the types of the server, the client and the tests are derived from it. The
 * client imports the types alone, so that it loads no schema library.
 */
import Type, { type Static, type TObject, type TSchema } from 'typebox';

/**
 * The type of the values that a schema describes. They are read-only: received values and values to be sent are never changed.
 */
export type Wire<Schema extends TSchema> = DeepReadonly<Static<Schema>>;

export type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/**
 * Allows no members other than the declared ones. It applies to requests; the OpenAPI document leaves it out of responses, so
 * that later versions can add members.
 */
export const closed = { additionalProperties: false } as const;

export const Timestamp = Type.String({
  format: 'date-time',
  description: 'RFC 3339, in UTC, with milliseconds.',
});

/** The user who made a resource, under the same name in every resource. */
export const CreatedBy = Type.String({ description: 'The id of the user who made this resource.' });

/** Like `CreatedBy`, but optional, because the server itself may make the resource. */
export const CreatedByIfKnown = Type.Optional(
  Type.String({
    description: 'The id of the user who made this resource. Absent when no user has made it.',
  }),
);

export const ClosedBy = Type.Optional(
  Type.String({
    description:
      'The id of the user who closed this resource. Absent when it has ended by itself, or when the user is not known.',
  }),
);

export const UpdatedByIfKnown = Type.Optional(
  Type.String({
    description: 'The id of the user who made the last change. Absent when no user has made it.',
  }),
);

/** Returns the schema of a value that may be null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/**
 * Returns the schema of a member that may be left out; null means the same, because answers show null for a member that is not
 * set.
 */
export function optionalOrNull<T extends TSchema>(schema: T) {
  return Type.Optional(nullable(schema));
}

const METADATA_KEY = '[A-Za-z0-9][A-Za-z0-9._-]{0,63}';

/** Pairs of texts that clients attach to a resource. The server only stores them, and filters lists by them. */
export const MetadataSchema = mapOf(Type.String({ maxLength: 500 }), {
  propertyNames: Type.String({ pattern: `^${METADATA_KEY}$` }),
  maxProperties: 16,
  description:
    'Up to 16 pairs of texts of your own, for example a project or a ticket. Keys have up to 64 letters, digits, dots, underscores ' +
    'and hyphens, and values up to 500 characters. Everybody who can read the resource can read the pairs.',
});
export type Metadata = Wire<typeof MetadataSchema>;

/** Like `MetadataSchema`, but for responses. */
export const ShownMetadata = Type.Optional(
  mapOf(Type.String(), {
    description: 'The pairs of texts that were attached to the resource. Absent when there are none.',
  }),
);

/** The query parameter of lists that are filtered by metadata. */
export const MetadataFilter = Type.Optional(
  Type.String({
    maxLength: 600,
    pattern: `^${METADATA_KEY}=`,
    description:
      'Only items with this pair in their `metadata`, written `key=value`. A page may have fewer items ' +
      'than `limit`, even none, and still a `nextCursor`, because a limited number of items is compared ' +
      'for each page.',
  }),
);

/** The longest deadline that a request may set, in seconds. */
const MAX_TIMEOUT_S = 86_400;

/** The member of requests that limits how long the work may take. */
export const TimeoutSchema = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: MAX_TIMEOUT_S,
    description:
      'How many seconds the work may take after it begins. Waiting for the kernel of a sleeping session ' +
      'and checking new code do not count. At the deadline the work is interrupted as by a cancellation, ' +
      'and fails with the code `timed_out`. No deadline when omitted.',
  }),
);

/** Returns the schema of one of several words. */
export function oneOf<const Words extends readonly string[]>(
  words: Words,
  options: { $id?: string; description?: string; default?: Words[number] } = {},
) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: [...words], ...options });
}

/** Returns the schema of an object whose members the caller names. */
export function mapOf<T extends TSchema>(
  value: T,
  options: { description?: string; propertyNames?: TSchema; maxProperties?: number } = {},
) {
  return Type.Unsafe<Record<string, Static<T>>>({ type: 'object', additionalProperties: value, ...options });
}

/** Returns the schema of a union with `tag` as discriminator: a constant in each variant. Each variant has an `$id`. */
export function taggedUnion<const Variants extends TObject[]>(
  tag: string,
  variants: readonly [...Variants],
  options: { $id: string; description?: string; examples?: unknown[] },
) {
  return Type.Union([...variants], { ...options, discriminator: { propertyName: tag } });
}

/** Returns `SessionSnapshot` for `session.snapshot`: the names of the schemas of events. */
export function inPascalCase(type: string): string {
  return type.replace(/(?:^|[.-])(\w)/g, (_, letter: string) => letter.toUpperCase());
}

export const SilentWorkers = Type.Optional(
  Type.Integer({
    description:
      'In a server of several workers: how many workers did not answer within five seconds. Their data are missing here.',
  }),
);

/** Why a subscriber of an event stream was cut off. */
export const ResyncReasonSchema = oneOf(['slow_subscriber', 'server_stopping']);
export type ResyncReason = Wire<typeof ResyncReasonSchema>;

/** A query parameter for clients that cannot set the header. */
export const LastEventId = Type.String({
  maxLength: 1000,
  default: '',
  description: 'The same as the header `Last-Event-ID`, which takes precedence.',
});

/** The data of events by type, from their schemas by type. */
export type EventsOf<Schemas extends Readonly<Record<string, TSchema>>> = {
  readonly [T in keyof Schemas]: Wire<Schemas[T]>;
};

/** The events of a stream as they are published, by their types; the stream adds the time. */
export type EnvelopeOf<Events> = {
  readonly [Type in keyof Events]: {
    readonly type: Type;
    readonly data: Events[Type];
    readonly time?: string;
  };
}[keyof Events];

/** A received event of a stream. */
export type Streamed<Envelope> = Envelope & {
  readonly time: string;
  readonly missed?: true;
  readonly resumed?: true;
};

const MISSED = Type.Optional(
  Type.Literal(true, {
    description: 'The event happened while you were disconnected, after the event that you named.',
  }),
);
const RESUMED = Type.Optional(
  Type.Literal(true, { description: 'The events that you have missed follow, marked with `missed`.' }),
);

/** Returns the schema of an event's data with a name, such as `CellOpData`, unless it has one. */
export function namedData(data: TSchema, event: string): TSchema {
  return '$id' in data ? data : { ...data, $id: `${event}Data` };
}

/** Returns the schema of the JSON in the `data:` lines of a stream, from the schema of each event's data by its type. */
export function eventUnion($id: string, events: Readonly<Record<string, TObject>>) {
  return taggedUnion(
    'type',
    Object.entries(events).map(([type, data]) =>
      Type.Object(
        {
          type: Type.Literal(type),
          time: Timestamp,
          ...(type.endsWith('.snapshot') ? { resumed: RESUMED } : { missed: MISSED }),
          data: namedData(data, inPascalCase(type)),
        },
        { ...closed, $id: `${inPascalCase(type)}Event` },
      ),
    ),
    { $id },
  );
}

/** The body of requests that need none: an empty object. */
export const EmptyBodySchema = Type.Object({}, { $id: 'EmptyBody', ...closed, examples: [{}] });

const After = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 200,
    description:
      'The `nextCursor` of the page before; omitted for the first page. If the item that the cursor names was ' +
      'deleted, the list continues after its place.',
  }),
);

/** The query of a list that comes in pages. */
export const PageQuery = Type.Object(
  {
    after: After,
    limit: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 50,
      description: 'The largest number of items to return.',
    }),
  },
  closed,
);

/** The most items of a list that is returned as a whole, because its memory and the time to read it are bounded. */
export const MAX_WHOLE_LIST = 10_000;

/** The query of a list that is returned as a whole unless a page is requested. */
export const WholeListQuery = Type.Object(
  {
    after: After,
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        description: 'The largest number of items to return. Omitted: all, up to 10,000.',
      }),
    ),
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

/** Returns the schema of a list that is not split into pages. */
export function listSchema<T extends TSchema>(name: string, item: T) {
  return Type.Object({ items: Type.Array(item) }, { $id: name, ...closed });
}

export interface Page<Item> {
  readonly items: readonly Item[];
  /** The `after` of the next page; null when there are no more items. */
  readonly nextCursor: string | null;
}

/** The address of a notebook in a browser. */
export const NotebookUrlSchema = Type.String({
  description:
    'The address of the notebook in a browser, for people who have signed in there; others sign in first. ' +
    'A path below the address of the server, or a whole URL if the setting `TROUPE_PUBLIC_URL` is set.',
});
