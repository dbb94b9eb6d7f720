/**
 * The writing side of a deferred reply. While its value is awaited, the head (status 200) is sent, and then white space at
 * intervals. JSON may begin with white space, and proxies would take silence for a dead connection.
 *
 * The writer owns its timer. After `end` or `stop`, which clear the timer, nothing is written.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import type { AppError } from '#src/base/errors/errors.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { MAX_WHOLE_BODY_BYTES, type ReplyStamp, writeHead } from './write-reply.ts';

/**
 * A request whose reply is deferred or waits. Before the reply, its caller may lose the right to the operation.
 */
export interface PendingAnswer {
  readonly caller: Principal | undefined;
  /** The request's action in the permission table. */
  readonly action: string | undefined;
  /** The notebook, conversation or workspace of the request. */
  readonly home: Home | undefined;
  /** Answers with `error` at once and aborts the work, as if the client had left. */
  revoke(error: AppError): void;
}

/** Resolves with the value, and keeps `answer` in `all` until then. */
export function whilePending<T>(
  all: Set<PendingAnswer>,
  answer: PendingAnswer,
  value: Promise<T>,
): Promise<T> {
  all.add(answer);
  return value.finally(() => all.delete(answer));
}

const HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'application/json',
  'x-accel-buffering': 'no', // without this nginx would hold the white space back
};

export class DeferredAnswer {
  readonly #res: WireResponse;
  readonly #stamp: ReplyStamp;
  readonly #timer: NodeJS.Timeout | undefined;
  #hasBegun = false;

  /**
   * The abort handler of `res` must call `stop`. With `endsConnection` nothing is sent before the value: once a body has
   * begun, uWebSockets.js 20 would write the `connection: close` header into it.
   */
  constructor(res: WireResponse, stamp: ReplyStamp, intervalMs: number, endsConnection: boolean) {
    this.#res = res;
    this.#stamp = stamp;
    if (!endsConnection) this.#timer = setInterval(() => this.#beat(), intervalMs);
  }

  /** Whether the head was sent. The status is then 200, even if the work fails later. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Writes the rest of an answer that has begun, as fast as the client reads. Calls `done` before the last byte is handed over. */
  end(body: Uint8Array | string, done: () => void): void {
    this.stop();
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    const last = Math.max(0, bytes.byteLength - MAX_WHOLE_BODY_BYTES);
    let offset = 0;
    const offer = (): boolean => {
      let isTaken = true;
      // uWebSockets.js keeps a piece that the connection does not take, so no piece is sent again.
      while (isTaken && offset < last) {
        const piece = bytes.subarray(offset, Math.min(offset + MAX_WHOLE_BODY_BYTES, last));
        offset += piece.byteLength;
        isTaken = this.#res.write(piece);
      }
      if (!isTaken) return false;
      done();
      this.#res.end(bytes.subarray(last));
      return true;
    };
    if (last > 0) this.#res.onWritable(offer);
    this.#res.cork(() => {
      offer();
    });
  }

  /** Stops the white space. */
  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    this.#res.cork(() => {
      if (!this.#hasBegun) writeHead(this.#res, 200, this.#stamp, HEADERS);
      this.#hasBegun = true;
      this.#res.write(' ');
    });
  }
}
