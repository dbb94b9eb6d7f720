/**
 * One open event stream: a response that is written for as long as the client stays. It owns the subscription behind it
 * and closes it when the client leaves.
 *
 * uWebSockets.js keeps what a socket did not take and empties that only on the next write, so when the socket takes
 * bytes again a comment is written first: only if that goes through is there room for frames. Unsent bytes of ours are
 * therefore at most one chunk and a comment per subscriber.
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

/** The streams that are open now, so that a revoked token or a closing server can end them. */
export type OpenStreams = Set<EventStream>;

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
      if (this.write(COMMENT)) this.#subscription?.writable();
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
    // Without closing the connection: asked for that, uWebSockets.js 20 writes the header into the body.
    this.#res.cork(() => {
      this.#res.end();
    });
  }

  /** The client has left. */
  close(): void {
    if (!this.#over) this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#streams.delete(this);
    this.#subscription?.close();
  }
}
