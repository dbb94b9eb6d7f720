import { AppError } from '#src/base/errors/errors.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { type BodyCharge, MAX_FREE_BYTES, noRoomForBody } from './body-memory.ts';
import { bodyTooLarge, isDiscarded } from './request-body.ts';

/**
 * When this many bytes are in memory, the client has to wait. uWebSockets.js still passes on what it reads in the same turn: up to ten
 * reads of 512 KiB, and the end of the body may be among them.
 */
const MAX_WAITING_BYTES = 1024 * 1024;

/** The body of a request without one. */
export const NO_CONTENT: AsyncIterable<Uint8Array> = {
  async *[Symbol.asyncIterator]() {},
};

/**
 * The bytes of a body, for one reader, as they arrive. Little is held in memory: when the reader
 * falls behind, the client waits. Reading rejects when the client leaves, with `body_too_large`
 * beyond the limit, and with `unavailable` when the memory for bodies has no room.
 */
export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #res: WireResponse;
  readonly #limitBytes: number;
  readonly #charge: BodyCharge;
  #hasNoRoom = false;
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #size = 0;
  #isPaused = false;
  #end: 'open' | 'whole' | 'refused' | 'gone' = 'open';
  #isDiscarding = false;
  /** Called when something has changed that a reader may wait for. */
  #wake: () => void = () => {};

  /** Must be called in the callback of the request. */
  constructor(res: WireResponse, limitBytes: number, charge: BodyCharge) {
    this.#res = res;
    this.#limitBytes = limitBytes;
    this.#charge = charge;
    res.onData((chunk, isLast) => this.#take(chunk, isLast));
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#end !== 'open') return;
    this.#size += chunk.byteLength;
    const isTooLarge = this.#size > this.#limitBytes;
    if (isLast) {
      this.#resume(); // or the connection would not take another request
      this.#end = isTooLarge && !this.#isDiscarding ? 'refused' : 'whole';
    } else if (!isDiscarded(this.#size, this.#limitBytes)) this.#end = 'refused';
    const isFree = isLast && this.#size <= MAX_FREE_BYTES;
    if (!isTooLarge && !this.#isDiscarding && !isFree)
      this.#hasNoRoom ||= !this.#charge.take(chunk.byteLength);
    if (isTooLarge || this.#isDiscarding || this.#hasNoRoom) this.#drop();
    else if (chunk.byteLength > 0) {
      this.#pieces.push(new Uint8Array(chunk.slice(0))); // uWebSockets.js reuses the memory of the chunk
      this.#waitingBytes += chunk.byteLength;
      if (this.#waitingBytes > MAX_WAITING_BYTES && !isLast && !this.#isPaused) {
        this.#isPaused = true;
        this.#res.pause();
      }
    }
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      const piece = this.#pieces.shift();
      if (this.#size > this.#limitBytes) throw bodyTooLarge(this.#limitBytes);
      if (this.#end === 'gone')
        throw new AppError('invalid_request', 'The client disconnected before it had sent the whole body.');
      if (this.#hasNoRoom) throw noRoomForBody();
      if (piece !== undefined) {
        this.#waitingBytes -= piece.byteLength;
        if (this.#waitingBytes === 0) this.#resume();
        try {
          yield piece;
        } finally {
          this.#charge.give(piece.byteLength);
        }
      } else if (this.#end === 'whole') return;
      else await this.#change();
    }
  }

  /**
   * Reads and drops the rest of the body, because a client that sends everything before it reads would otherwise not see the
   * reply. Resolves with whether the body was read to its end: if not, the connection must end with the reply.
   */
  async discard(): Promise<boolean> {
    this.#isDiscarding = true;
    this.#drop();
    this.#resume();
    while (this.#end === 'open') await this.#change();
    return this.#end === 'whole';
  }

  /** Tells the reader that the client has left. */
  abandon(): void {
    // Even when the whole body has arrived, its unread part is dropped. The reader must fail, so
    // that it does not take the part for the whole.
    if (this.#end === 'open' || this.#pieces.length > 0) this.#end = 'gone';
    this.#drop();
    this.#wake();
  }

  #drop(): void {
    this.#charge.give(this.#waitingBytes);
    this.#pieces = [];
    this.#waitingBytes = 0;
  }

  #resume(): void {
    if (!this.#isPaused || this.#end !== 'open') return;
    this.#isPaused = false;
    this.#res.resume();
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
