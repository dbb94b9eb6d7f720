/** What the event streams of notebook sessions and of agent sessions have in common. */
import Type, { type TSchema } from 'typebox';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import { closed, LastEventId } from '#src/wire/shape.ts';
import { type EmptyReply, noContent, type StreamReply, stream } from '../reply/reply.ts';

/** How streams begin and end, for the description of each. */
export const STREAM_DESCRIPTION =
  'The order is `session.snapshot`, the events that you missed, the current state, `session.replayed`, and then live ' +
  'events. With the id of the last event that you received, the snapshot has `resumed: true` if the server still has ' +
  'everything that followed, and those events have `missed: true`. To rebuild your state at each snapshot, skip what has ' +
  '`missed`; to continue with the state that you have, take what has `missed` and skip the other events until ' +
  '`session.replayed`. Heartbeats are comments. The stream of a closed session is 204.';

export const STREAM_HEADERS_READ = {
  'last-event-id': 'The id of the last event that you received. `EventSource` sends it when it reconnects.',
} as const;

export const StreamQuery = Type.Object(
  {
    lastEventId: LastEventId,
    observe: Type.Boolean({
      default: false,
      description:
        'Whether you only look: a session that sleeps stays asleep, one that nobody else uses still goes to sleep, and you ' +
        'see it wake.',
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

/** Returns the declared responses of a stream of these events. */
export function streamResponses<T extends TSchema>(schema: T) {
  return {
    200: { description: 'The event stream.', schema, contentType: 'text/event-stream' },
    204: { description: 'The session is closed: nothing will happen any more.' },
  } as const;
}

/** Returns from which event a subscriber continues (empty when it names none), and whether it only looks. */
export function streamRequestOf(
  headers: Readonly<Record<'last-event-id', string>>,
  query: { readonly lastEventId: string; readonly observe: boolean },
): { readonly lastEventId: string; readonly observe: boolean } {
  return { lastEventId: headers['last-event-id'] || query.lastEventId, observe: query.observe };
}

/** Returns the reply for what attaches a subscriber; undefined stands for a closed session. */
export function streamReply(open: ((sink: EventSink) => Subscription) | undefined): StreamReply | EmptyReply {
  return open === undefined ? noContent() : stream(open);
}
