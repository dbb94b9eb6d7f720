/**
 * Follows a session's events across connections. A cut, silence beyond three heartbeats, or `session.resync-required`
 * leads to a new connection with the last event's id; `session.closed` ends it. What a server refuses (4xx) is thrown.
 *
 * After a reconnect the server either goes on behind the last event or begins again with `session.snapshot`: a reader
 * that rebuilds its state at every snapshot is always right.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, ConnectionError } from './api-error.ts';
import type { Connection, RequestOptions } from './connection.ts';
import { EventParser } from './event-parser.ts';
import type { StreamEvent } from './events.ts';

export interface FollowOptions extends RequestOptions {
  /** Go on behind this event, where the server still knows it. */
  readonly lastEventId?: string | undefined;
  /** Without a byte for so long the connection counts as lost. */
  readonly silenceMs?: number;
  /** Without a connection for so long the last failure is thrown. */
  readonly giveUpAfterMs?: number;
  /** Told each time with the id that belongs to the event about to be given. */
  readonly onEventId?: (lastEventId: string) => void;
}

const SILENCE_MS = 16_000;
const GIVE_UP_AFTER_MS = 60_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;

/**
 * The events at `path`, in order. The first connection must succeed. Leaving the loop, or aborting `signal`, closes the
 * connection; an abort throws its reason.
 */
export async function* followEvents<Event extends StreamEvent = StreamEvent>(
  connection: Connection,
  path: string,
  options: FollowOptions = {},
): AsyncGenerator<Event, void, undefined> {
  const { signal, giveUpAfterMs = GIVE_UP_AFTER_MS } = options;
  let { lastEventId } = options;
  let aliveAt: number | undefined;
  let pauseMs = 0;
  for (;;) {
    let leastPauseMs = 0;
    const subscription = new Subscription(connection, path, { ...options, lastEventId });
    try {
      for await (const { id, event } of subscription.events()) {
        aliveAt = performance.now();
        pauseMs = 0;
        lastEventId = id;
        options.onEventId?.(id);
        yield event as Event;
        if (event.type === 'session.closed') return;
        if (event.type === 'session.resync-required') break;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (aliveAt === undefined || !mayPass(error)) throw error;
      if (error instanceof ApiError) leastPauseMs = (error.retryAfter ?? 0) * 1000;
      if (performance.now() + leastPauseMs - aliveAt > giveUpAfterMs) throw error;
    }
    aliveAt ??= performance.now();
    pauseMs = Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
    // Spread, so that a thousand clients of a server that went do not come back as one.
    await pause(Math.max(leastPauseMs, pauseMs * (0.75 + Math.random() / 2)), signal);
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch {
    signal?.throwIfAborted(); // with its own reason
  }
}

/** Whether another attempt can have another outcome. */
function mayPass(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500 || error.status === 429 || error.status === 408;
  return error instanceof ConnectionError;
}

/** One connection to an event stream. */
class Subscription {
  readonly #connection: Connection;
  readonly #path: string;
  readonly #options: FollowOptions;

  constructor(connection: Connection, path: string, options: FollowOptions) {
    this.#connection = connection;
    this.#path = path;
    this.#options = options;
  }

  /** Ends without an error when the server ends the stream. */
  async *events(): AsyncGenerator<{ id: string; event: StreamEvent }, void, undefined> {
    const { lastEventId = '', silenceMs = SILENCE_MS, signal } = this.#options;
    const silence = new AbortController();
    let isReading = true;
    const watch = setTimeout(() => {
      if (isReading) silence.abort(new Error(`no heartbeat for ${silenceMs} ms`));
      else watch.refresh();
    }, silenceMs);
    const both = signal === undefined ? silence.signal : AbortSignal.any([silence.signal, signal]);
    try {
      const response = await this.#connection.open({
        method: 'GET',
        path: this.#path,
        headers: {
          accept: 'text/event-stream',
          ...(lastEventId === '' ? {} : { 'last-event-id': lastEventId }),
        },
        signal: both,
      });
      if (response.body === null) return;
      const parser = new EventParser();
      for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
        // While the reader is at work the server's heartbeats wait in the socket.
        isReading = false;
        for (const { lastEventId: id, data } of parser.push(bytes)) {
          yield { id, event: JSON.parse(data) as StreamEvent };
        }
        isReading = true;
        watch.refresh();
      }
    } catch (error) {
      if (error instanceof ApiError || error instanceof ConnectionError || signal?.aborted) throw error;
      throw new ConnectionError(this.#connection.baseUrl + this.#path, error);
    } finally {
      clearTimeout(watch);
    }
  }
}
