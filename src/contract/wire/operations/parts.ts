/** Headers, queries and responses that several operations share. */
import Type, { type TSchema } from 'typebox';
import { EventTicketSchema } from '../event-ticket.ts';
import { closed, EmptyBodySchema, LastEventId } from '../shape.ts';

/** The request headers of an operation that returns 304 when the caller has the current state. */
export const READ_CONDITION = {
  'if-none-match':
    'Entity tags of the states that the caller has. The reply is 304 when one of these states is current.',
} as const;

/** The request headers of an operation that changes a record only in the state that the caller has read. */
export const WRITE_CONDITIONS = {
  'if-match':
    'Entity tags of the states that the caller has read. The change is made only if one of these states is current; otherwise the reply is 412.',
  'if-none-match': 'Entity tags. If one of these tags is current, the reply is 412 and nothing has changed.',
} as const;

/** The request headers of an operation that sends content, whole or one range of it. */
export const CONTENT_HEADERS = {
  ...READ_CONDITION,
  range: 'One range of bytes. A request for several ranges gets the whole content.',
  'if-range': 'An entity tag. The range is ignored unless the tag is current.',
} as const;

/** The response header that carries the entity tag of a record. */
export const ETAG_HEADER = {
  etag:
    'The entity tag of this state, for `If-None-Match` and `If-Match`. It ends in `-gzip` when the body is compressed; both ' +
    'forms name the same state.',
} as const;

/** The response of an operation that takes `READ_CONDITION`. */
export const NOT_MODIFIED = {
  description: 'The client already has this state.',
  headers: ETAG_HEADER,
} as const;

const ASSET_HEADERS = {
  etag: 'The SHA-256 of the asset.',
  'content-disposition': '`inline` for plain images and plain text, otherwise `attachment`.',
};

/** The responses of an operation that sends an output which is kept apart. */
export const ASSET_RESPONSES = {
  200: { description: 'The whole asset.', contentType: '*/*', headers: ASSET_HEADERS },
  206: {
    description: 'The requested range.',
    contentType: '*/*',
    headers: {
      ...ASSET_HEADERS,
      'content-range': 'The range of the bytes, and the length of the whole asset.',
    },
  },
  304: { description: 'The client already has the asset.', headers: ASSET_HEADERS },
} as const;

/** Returns the responses of an operation that submits a run and may wait for its end. */
export function submittedResponses<Schema extends TSchema>(schema: Schema) {
  return {
    200: { description: 'The run, which ended within `wait` seconds.', schema, headers: ETAG_HEADER },
    202: {
      description: 'The run, which was stored and has started.',
      schema,
      headers: { location: 'The path of the run.' },
    },
  } as const;
}

/** The request headers of an event stream. */
export const STREAM_HEADERS = {
  'last-event-id': 'The id of the last event that you received. `EventSource` sends it when it reconnects.',
} as const;

/** The query of the event stream of a session. */
export const StreamQuery = Type.Object(
  {
    lastEventId: LastEventId,
    observe: Type.Boolean({
      default: false,
      description:
        'Whether you only observe: a sleeping session stays asleep, and a session without other users ' +
        'still goes to sleep. When the session wakes, you get events again.',
    }),
    ticket: Type.String({
      maxLength: 200,
      default: '',
      description:
        'A ticket for this stream, instead of the headers `Authorization` and `Service-Workspace-Id`.',
    }),
  },
  closed,
);

/** Returns the responses of the event stream of a session, whose events have this schema. */
export function streamResponses<T extends TSchema>(schema: T) {
  return {
    200: { description: 'The event stream.', schema, contentType: 'text/event-stream' },
    204: { description: 'The session is closed: it has no more events.' },
  } as const;
}

/** A request for a ticket to the event stream of a session. */
export const EVENT_TICKET = {
  body: EmptyBodySchema,
  optionalBody: true,
  responses: { 201: { description: 'The ticket, which is shown only once.', schema: EventTicketSchema } },
} as const;
