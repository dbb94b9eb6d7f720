/**
 * One open event stream: a response that is written for as long as the client stays. It owns its subscription and closes it when
 * the client leaves.
 *
 * uWebSockets.js buffers the bytes that a socket does not take and flushes them only on the next write. So when the socket
 * becomes writable, a few bytes are written first (a comment, or one byte of a frame), and more follows only if the socket took
 * them. So a subscriber has at most one piece (64 KiB) and those few bytes unsent. They are freed only when the connection
 * closes. A client that is cut off has ten seconds to take the rest of its frame and the event that reports the cut. Only a
 * limited number of clients may have this time at once.
 */

import type { Caller } from '#src/base/caller/principal.ts';
import { type NamedLimit, refuseOverQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type { EventSink, Relay, Subscription } from '#src/runtime/events/event-sink.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { WireResponse } from '../wire-exchange.ts';
import type { StreamReply } from './reply.ts';
import { type ReplyStamp, writeHead } from './write-reply.ts';

/** The headers of every event stream, in addition to the general ones. */
const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/**
 * No empty line follows the comment. An empty line would end an event, and some clients would report an empty event.
 */
const COMMENT = Buffer.from(':\n');

const MIN_RETRY_MS = 1000;

/** How long a lagging client has to take the event that reports the cut. */
const LEAVING_MS = 10_000;
/**
 * How many clients may have this time at once: 16 MiB of unsent pieces. If there are more, the connection that has waited longest
 * is closed.
 */
const MAX_LEAVING = 256;

/** The open streams, so that revoking a token or closing the server can end them. */
export class OpenStreams extends Set<EventStream> {
  /** Streams that have ended but whose last bytes the clients have not taken yet. */
  readonly leaving = new Set<EventStream>();

  /** Returns how many streams are open in a workspace. */
  of(workspaceId: string): number {
    let count = 0;
    for (const { caller } of this)
      if (caller !== undefined && 'workspaceId' in caller && caller.workspaceId === workspaceId) count++;
    return count;
  }
}

export const STREAM_LIMIT: NamedLimit = { name: 'streams', what: 'open event streams' };

/** Throws `quota_exceeded` when the workspace has `limit` streams open; 0 means any number. */
export function admitStream(streams: OpenStreams, limit: number, workspaceId: WorkspaceId): void {
  refuseOverQuota(STREAM_LIMIT, limit, () => streams.of(workspaceId));
}

/** Because `cork` calls back before it returns, all streams can share one callback. Thousands of streams are open at once. */
const corked: { res?: WireResponse; bytes: Uint8Array; isAccepted: boolean } = {
  bytes: COMMENT,
  isAccepted: true,
};
const writeCorked = () => {
  corked.isAccepted = corked.res?.write(corked.bytes) ?? false;
};

export class EventStream implements EventSink {
  readonly caller: Caller | undefined;
  /** The action that the caller must be allowed to do for as long as the stream lasts. */
  readonly action: string | undefined;
  /**
   * The notebook or conversation that must not leave this worker while the stream is open;
   * undefined when moving it is allowed.
   */
  readonly home: Home | undefined;
  readonly #res: WireResponse;
  readonly #streams: OpenStreams;
  #accepted = true;
  #over = false;
  #subscription: Subscription | undefined;
  #deadline: NodeJS.Timeout | undefined;
  /** The last bytes for a client that is cut off. */
  #goodbye: Iterator<Uint8Array> | undefined;

  /** The caller has written the status and headers of `res`. */
  constructor(
    res: WireResponse,
    { caller, action, home }: Pick<EventStream, 'caller' | 'action' | 'home'>,
    streams: OpenStreams,
  ) {
    this.#res = res;
    this.caller = caller;
    this.action = action;
    this.home = home;
    this.#streams = streams;
    streams.add(this);
  }

  get relay(): Relay | undefined {
    return this.#res.relay;
  }

  /** Sends the first bytes and opens the subscription. */
  start(open: (sink: EventSink) => Subscription): void {
    this.write(retryField());
    this.goOn(open);
  }

  /**
   * Takes over the response of a stream whose first bytes another worker has sent, and opens the
   * subscription.
   */
  goOn(open: (sink: EventSink) => Subscription): void {
    this.#res.onAborted(() => this.close());
    this.#res.onWritable(() => this.#goOnWriting());
    this.#subscription = open(this);
    if (this.#over) this.#subscription.close();
  }

  /** Continues once the socket is writable again. Returns true, as uWebSockets.js demands. */
  #goOnWriting(): boolean {
    if (this.#deadline !== undefined) this.#sayGoodbye();
    else if (this.write(this.#subscription?.probe() ?? COMMENT)) this.#subscription?.writable();
    return true;
  }

  /**
   * Tests whether the socket takes bytes again. Linux reports a socket as writable only when a third of its send buffer is free.
   * The buffer may have 4 MiB, so with a slow reader the report comes seconds after the socket could take bytes.
   */
  retry(): void {
    if (!this.#over && !this.#accepted && this.relay === undefined) this.#goOnWriting();
  }

  /** Writes the bytes. Returns false when the socket is full or the stream has ended: the subscription then waits for `writable`. */
  write(bytes: Uint8Array): boolean {
    return !this.#over && this.#send(bytes);
  }

  #send(bytes: Uint8Array): boolean {
    corked.res = this.#res;
    corked.bytes = bytes;
    this.#res.cork(writeCorked);
    corked.bytes = COMMENT;
    this.#accepted = corked.isAccepted;
    return this.#accepted;
  }

  /** Tells the client to connect again, and ends the stream. */
  resync(reason: ResyncReason): void {
    this.#subscription?.cutOff(reason);
  }

  /** Ends the response. Idempotent. */
  end(): void {
    if (this.#over) return;
    this.#finish();
    this.#endResponse();
  }

  /**
   * Ends the stream of a client that lags. First the pieces of `last` are sent, if the client takes them in time.
   */
  cutOff(last: Iterable<Uint8Array>): void {
    if (this.#over) return;
    this.#goodbye = last[Symbol.iterator]();
    this.#finish();
    if (this.#accepted && this.#sendGoodbye()) {
      this.#endResponse();
      return;
    }
    const { leaving } = this.#streams;
    const [first] = leaving;
    if (leaving.size >= MAX_LEAVING) first?.abandon();
    leaving.add(this);
    // The connection is not closed within this call, because uWebSockets.js may be about to continue with it.
    this.#deadline = setTimeout(() => this.abandon(), LEAVING_MS);
  }

  /** The connection of a client that was cut off is writable again. */
  #sayGoodbye(): void {
    if (this.#sendGoodbye()) this.#leave(() => this.#endResponse());
  }

  /** Sends until the connection refuses. Returns whether it has taken everything. */
  #sendGoodbye(): boolean {
    const goodbye = this.#goodbye;
    for (let next = goodbye?.next(); next?.done === false; next = goodbye?.next()) {
      if (!this.#send(next.value)) return false;
    }
    return true;
  }

  /** Closes the connection of a stream that has ended, although the client has not taken the last bytes. */
  abandon(): void {
    this.#leave(() => this.#res.close());
  }

  /** Releases everything after the client has left. Idempotent. */
  close(): void {
    this.#leave(() => {});
    if (!this.#over) this.#finish();
  }

  #leave(then: () => void): void {
    if (this.#deadline === undefined) return;
    clearTimeout(this.#deadline);
    this.#deadline = undefined;
    this.#streams.leaving.delete(this);
    then();
  }

  #endResponse(): void {
    // The connection is not closed with the response: uWebSockets.js 20 would write the
    // `connection` header into the body.
    this.#res.cork(() => {
      this.#res.end();
    });
  }

  #finish(): void {
    this.#over = true;
    this.#streams.delete(this);
    this.#subscription?.close();
  }
}

/** Writes the head of an event stream alone, and ends the response. */
export function writeStreamHead(res: WireResponse, stamp: ReplyStamp): void {
  res.cork(() => {
    writeHead(res, 200, stamp, STREAM_HEADERS);
    res.endWithoutBody();
  });
}

export interface StreamOpening extends Pick<StreamReply, 'open'> {
  readonly owner: Pick<EventStream, 'caller' | 'action' | 'home'>;
  readonly streams: OpenStreams;
  /** Called with the error of `open`. */
  readonly failed: (error: unknown) => void;
}

/** Writes the head of an event stream and opens the stream, which then owns the response and its abort handler. Never throws. */
export function openStream(
  res: WireResponse,
  stamp: ReplyStamp,
  { open, owner, streams, failed }: StreamOpening,
): void {
  res.cork(() => {
    writeHead(res, 200, stamp, STREAM_HEADERS);
    const stream = new EventStream(res, owner, streams);
    try {
      stream.start(open);
    } catch (error) {
      // The status has been sent, so the stream can only end. The error is not thrown, because an error within a callback of
      // uWebSockets.js would end the server.
      failed(error);
      stream.end();
    }
  });
}

/**
 * Returns the first line of a stream: how long `EventSource` waits before it reconnects. As after `COMMENT`, no empty line
 * follows. The time is random, so that the clients of a restarted server do not all come back at once.
 */
function retryField(): Buffer {
  return Buffer.from(`retry: ${MIN_RETRY_MS + Math.floor(Math.random() * MIN_RETRY_MS)}\n`);
}
