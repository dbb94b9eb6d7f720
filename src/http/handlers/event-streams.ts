/** The parts that the event streams of notebook sessions and of agent sessions have in common. */
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import { type EmptyReply, noContent, type StreamReply, stream } from '../reply/reply.ts';

/** How streams begin and end, for the descriptions of their operations. */
export const STREAM_DESCRIPTION =
  'The order is `session.snapshot`, the events that you missed, the current state, `session.replayed`, and then live ' +
  'events. With the id of the last event that you received, the snapshot has `resumed: true` if the server still has ' +
  'all later events, and the missed events have `missed: true`. To rebuild your state at each snapshot, skip events with ' +
  '`missed`; to continue with the state that you have, take events with `missed` and skip the others until ' +
  '`session.replayed`. Heartbeats are comments. For a closed session the response is 204.';

/** Returns the id of the event after which a subscriber continues, or an empty text, and whether the subscriber only observes. */
export function streamRequestOf(
  headers: Readonly<Record<'last-event-id', string>>,
  query: { readonly lastEventId: string; readonly observe: boolean },
): { readonly lastEventId: string; readonly observe: boolean } {
  return { lastEventId: headers['last-event-id'] || query.lastEventId, observe: query.observe };
}

/**
 * Returns the reply that opens an event stream. `open` attaches a subscriber. For a closed session `open` is undefined, and the
 * reply is a 204.
 */
export function streamReply(open: ((sink: EventSink) => Subscription) | undefined): StreamReply | EmptyReply {
  return open === undefined ? noContent() : stream(open);
}
