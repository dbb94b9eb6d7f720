/**
 * One open event stream: a response that is written for as long as the client stays. It owns the subscription behind it
 * and closes it when the client leaves.
 *
 * uWebSockets.js keeps what a socket did not take and empties that only on the next write, so when the socket takes
 * bytes again a few are written first (a comment, or one byte of a frame): only if they go through is there room for more.
 * Unsent bytes of ours are therefore at most one piece (64 KiB) and these few per subscriber. They are freed when the connection closes, not before,
 * so one that is cut off has a second to take its last bytes, and only so many connections at a time have it.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import { countOf, refuseOverQuota } from '#src/core/quota.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';

/** The headers of every event stream, beside the general ones. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

const COMMENT = Buffer.from(':\n\n');

/** How long a client that lags may take to be told that it is cut off. */
const LEAVING_MS = 1_000;
/** Who have that time at once: 16 MiB of unsent pieces. The others are closed without a word. */
const MAX_LEAVING = 256;

/** The streams that are open now, so that a revoked token or a closing server can end them. */
export class OpenStreams extends Set<EventStream> {
  /** Those that are over, and have last bytes to be taken. */
  readonly leaving = new Set<EventStream>();
}

/** Throws `quota_exceeded` when the workspace has `limit` streams open; 0 is no limit. */
export function admitStream(streams: OpenStreams, limit: number, workspaceId: WorkspaceId): void {
  const callers = function* () {
    for (const { principal } of streams) if (principal !== undefined) yield principal;
  };
  refuseOverQuota('open event streams', limit, () => countOf(callers(), workspaceId));
}

export class EventStream implements EventSink {
  readonly principal: Principal | undefined;
  readonly #res: HttpResponse;
  readonly #streams: OpenStreams;
  readonly #writeCorked = () => {
    this.#accepted = this.#res.write(this.#pending);
  };
  #pending: Uint8Array = COMMENT;
  #accepted = true;
  #over = false;
  #subscription: Subscription | undefined;
  #deadline: NodeJS.Timeout | undefined;

  /** The status and headers of `res` are written, its abort handler calls `close`. */
  constructor(res: HttpResponse, principal: Principal | undefined, streams: OpenStreams) {
    this.#res = res;
    this.principal = principal;
    this.#streams = streams;
    streams.add(this);
  }

  /** Sends the first bytes and lets the subscription write. */
  start(open: (sink: EventSink) => Subscription): void {
    this.#res.onWritable(() => {
      if (this.#deadline !== undefined) this.#leave(() => this.#endResponse());
      else if (this.write(this.#subscription?.probe() ?? COMMENT)) this.#subscription?.writable();
      return true;
    });
    this.write(COMMENT);
    this.#subscription = open(this);
    if (this.#over) this.#subscription.close();
  }

  write(bytes: Uint8Array): boolean {
    if (this.#over) return false;
    this.#pending = bytes;
    this.#res.cork(this.#writeCorked);
    this.#pending = COMMENT;
    return this.#accepted;
  }

  end(): void {
    if (this.#over) return;
    this.#finish();
    this.#endResponse();
  }

  cutOff(last: Uint8Array | undefined): void {
    if (this.#over) return;
    if (last !== undefined && this.write(last)) {
      this.end();
      return;
    }
    this.#finish();
    const { leaving } = this.#streams;
    const [first] = leaving;
    if (leaving.size >= MAX_LEAVING) first?.abandon();
    leaving.add(this);
    // Never within this call: uWebSockets.js may be about to go on with the same connection.
    this.#deadline = setTimeout(() => this.abandon(), last === undefined ? 0 : LEAVING_MS);
  }

  /** Closes the connection of a stream that is over, though its client has not taken the last bytes. */
  abandon(): void {
    this.#leave(() => this.#res.close());
  }

  /** The client has left. */
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
    // Without closing the connection: asked for that, uWebSockets.js 20 writes the header into the body.
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
