/**
 * Follows a session's events across connections. A lost connection, silence for more than three heartbeats, and
 * `session.resync-required` lead to a new connection with the last event's id; `session.closed` ends the stream, and so
 * does the answer that the session is closed. A refusal by the server (4xx) is thrown.
 *
 * After a reconnect the stream either continues after the last event or begins again with `session.snapshot`. A reader
 * that rebuilds its state at every snapshot is therefore always right: when the server has everything that was missed,
 * the reader gets that and never sees the second snapshot.
 */

import type { ActorStreamEvent } from '../wire/actor.ts';
import type { StreamEvent } from '../wire/events.ts';
import type { ServerStreamEvent } from '../wire/server.ts';
import { pause } from './abort.ts';
import { ConnectionError, unexpectedResponse } from './api-error.ts';
import { type Connection, failureOf, piecesOf, type RequestOptions } from './connection.ts';
import { EventParser } from './event-parser.ts';
import { isTransient } from './retry.ts';

/** An event of any stream. */
export type AnyStreamEvent = StreamEvent | ActorStreamEvent | ServerStreamEvent;

export interface FollowOptions extends RequestOptions {
  /**
   * Continues after this event if the server still has the events after it; the stream then does not repeat the current state.
   */
  readonly lastEventId?: string | undefined;
  /** How long a connection may be silent before it counts as lost. */
  readonly silenceMs?: number;
  /** How long to try to reconnect before the last failure is thrown. */
  readonly giveUpAfterMs?: number;
  /** Whether to observe only: the stream then wakes nothing and keeps nothing alive. */
  readonly observe?: boolean | undefined;
  /** Further parameters of the query. */
  readonly query?: Readonly<Record<string, string | boolean | undefined>>;
  /** Called before each event is yielded, with its id. */
  readonly onEventId?: (lastEventId: string) => void;
  /** Called when an attempt to reconnect has failed and another one follows. */
  readonly onUnreachable?: (failure: unknown) => void;
}

const SILENCE_MS = 16_000;
/** The server sends a heartbeat every 2.5 seconds. */
const LEAST_SILENCE_MS = 4_000;
/** How long a client tries to reach a server that does not respond. */
export const GIVE_UP_AFTER_MS = 60_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;

/**
 * Yields the events at `path`, in order. Throws when the first connection fails, unless the client repeats requests: then that failure
 * is treated like a lost connection. Leaving the loop, or aborting `signal`, closes the connection; an abort throws its reason.
 */
export async function* followEvents<Event extends AnyStreamEvent = StreamEvent>(
  connection: Connection,
  path: string,
  options: FollowOptions = {},
): AsyncGenerator<Event, void, undefined> {
  const { signal, giveUpAfterMs = Math.min(GIVE_UP_AFTER_MS, connection.patienceMs) } = options;
  let { lastEventId } = options;
  let hasBegun = connection.retries > 0;
  /** The time since which no connection has sent anything; undefined while a connection sends. */
  let lostAt: number | undefined;
  let pauseMs = 0;
  for (;;) {
    let leastPauseMs = 0;
    /** Whether events without `missed` only repeat state that the reader has. */
    let isContinuing = false;
    const subscription: Subscription = { isClosed: false, hasBegun: false };
    let failure: unknown = new ConnectionError(connection.baseUrl + path, 'the stream ended');
    try {
      for await (const { id, event } of eventsOf(subscription, connection, path, {
        ...options,
        lastEventId,
      })) {
        pauseMs = 0;
        lastEventId = id;
        // Each kind of stream has these events under its own name, such as `session.` or `actors.`.
        const [, kind] = event.type.split('.');
        if (kind === 'snapshot' && 'resumed' in event && event.resumed === true) isContinuing = true;
        if (isContinuing && event.missed !== true) {
          if (kind === 'replayed') isContinuing = false;
          continue;
        }
        options.onEventId?.(id);
        yield event as Event;
        if (event.type === 'session.closed') return;
        if (kind === 'resync-required') break;
      }
      if (subscription.isClosed) return;
    } catch (error) {
      signal?.throwIfAborted();
      if ((!hasBegun && !subscription.hasBegun) || !isTransient(error)) throw error;
      leastPauseMs = (Object(error).retryAfter ?? 0) * 1000;
      failure = error;
    }
    hasBegun = true;
    // Only now is the connection known to be lost: before, only heartbeats may have come for hours.
    if (subscription.hasBegun) lostAt = undefined;
    lostAt ??= performance.now();
    if (performance.now() + leastPauseMs - lostAt > giveUpAfterMs) throw failure;
    if (!subscription.hasBegun) options.onUnreachable?.(failure);
    pauseMs = Math.min(Math.max(pauseMs * 2, MIN_PAUSE_MS), MAX_PAUSE_MS);
    // The pause is randomised, so that a thousand clients of a restarted server do not reconnect at once.
    await pause(Math.max(leastPauseMs, pauseMs * (0.75 + Math.random() / 2)), signal);
  }
}

function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream *(;|$)/i.test(headers.get('content-type') ?? '');
}

/** The state of one connection to an event stream. */
interface Subscription {
  /** Whether the server has said that the session is closed, instead of opening a stream. */
  isClosed: boolean;
  /** Whether the server has sent any byte of the stream, even only a heartbeat. */
  hasBegun: boolean;
}

/** Yields the events of one connection until the server ends the stream, and keeps `subscription` up to date. */
async function* eventsOf(
  subscription: Subscription,
  connection: Connection,
  path: string,
  {
    lastEventId,
    silenceMs = Math.max(LEAST_SILENCE_MS, Math.min(SILENCE_MS, connection.patienceMs)),
    observe,
    query,
    signal,
  }: FollowOptions,
): AsyncGenerator<{ id: string; event: AnyStreamEvent }, void, undefined> {
  try {
    const headers = { accept: 'text/event-stream', 'last-event-id': lastEventId || undefined };
    const response = await connection.open(
      { method: 'GET', path, query: { ...query, observe }, headers, signal },
      silenceMs,
    );
    subscription.isClosed = response.status === 204;
    if (subscription.isClosed) return;
    if (!isEventStream(response)) {
      await response.body?.cancel();
      throw unexpectedResponse(response, connection.baseUrl + path, 'is not an event stream');
    }
    const parser = new EventParser();
    // While the caller works on an event, heartbeats wait unread in the socket, so only the time of reading counts.
    for await (const bytes of piecesOf(response, silenceMs)) {
      subscription.hasBegun = true;
      for (const { lastEventId: id, data } of parser.push(bytes)) {
        yield { id, event: JSON.parse(data) as AnyStreamEvent };
      }
    }
  } catch (error) {
    throw failureOf(error, connection.baseUrl + path, signal);
  }
}
