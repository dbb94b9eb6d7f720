import type { ForwardedRequest } from '#src/cluster/peers/forwarding.ts';
import { type BodyCharge, MAX_FREE_BYTES } from '../edge/body-memory.ts';
import { isDiscarded } from '../edge/request-body.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { WINDOW_BYTES } from './peer-response.ts';

/** The client is paused when more bytes than this are held. */
const MAX_HELD_BYTES = WINDOW_BYTES;

export interface ForwardedUploadOptions {
  readonly limitBytes: number;
  /** The memory of the held bytes. */
  readonly charge: BodyCharge;
  /** Called when the memory of bodies has no room for a piece that has arrived. */
  readonly refuse: () => void;
}

/**
 * The body of a request on its way to the worker that carries the request out. The upload holds bytes for which that worker has
 * given no credit yet, and pauses the client when it holds too many.
 */
export class ForwardedUpload {
  readonly #res: WireResponse;
  readonly #limitBytes: number;
  readonly #charge: BodyCharge;
  readonly #refuse: () => void;
  #forwarded: ForwardedRequest | undefined;
  #creditBytes = 0;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #receivedBytes = 0;
  #isWhole = false;
  #isPaused = false;
  /** Whether the rest of the body will not be read. */
  #isDropped = false;
  #onDiscarded: ((isWhole: boolean) => void) | undefined;

  /** Must be called in the callback of the request. */
  constructor(res: WireResponse, { limitBytes, charge, refuse }: ForwardedUploadOptions) {
    this.#res = res;
    this.#limitBytes = limitBytes;
    this.#charge = charge;
    this.#refuse = refuse;
    res.onData((chunk, isLast) => this.#take(chunk, isLast));
  }

  /** From now on, passes the body on as far as there is credit. */
  sendTo(forwarded: ForwardedRequest): void {
    this.#forwarded = forwarded;
    this.#send();
  }

  /** Allows this many more bytes to be passed on. */
  credit(bytes: number): void {
    this.#creditBytes += bytes;
    this.#send();
  }

  /**
   * Reads and discards the rest of the body, and then calls `done`. Many clients read an answer only after they have sent the
   * whole body. `isWhole` is false when the body is too long to be read to its end. Then the connection must end with the answer.
   */
  discard(done: (isWhole: boolean) => void): void {
    this.drop();
    if (this.#isWhole) done(true);
    else this.#onDiscarded = done;
  }

  /**
   * Drops the held bytes and all later ones, and resumes the client if it was paused. Must not be called after the client has left.
   */
  drop(): void {
    this.abandon();
    this.#resume();
  }

  /** Drops the body after the client has left, so the client is not resumed. */
  abandon(): void {
    this.#isDropped = true;
    this.#onDiscarded = undefined;
    this.#charge.give(this.#heldBytes);
    this.#held = [];
    this.#heldBytes = 0;
  }

  #take(chunk: ArrayBuffer, isLast: boolean): void {
    this.#receivedBytes += chunk.byteLength;
    this.#isWhole = isLast;
    if (this.#isDropped) {
      if (isLast || !isDiscarded(this.#receivedBytes, this.#limitBytes)) this.#endDiscarding();
      return;
    }
    const isFree = isLast && this.#receivedBytes <= MAX_FREE_BYTES;
    if (!isFree && !this.#charge.take(chunk.byteLength)) {
      this.#refuse();
      return;
    }
    // An empty piece is held only if no held piece can end the body.
    if (chunk.byteLength > 0 || (isLast && this.#held.length === 0))
      this.#hold(new Uint8Array(chunk.slice(0))); // uWebSockets.js reuses the memory of the chunk
    if (isLast) this.#resume(); // the end may arrive after the pause, and the connection has to take another request
    this.#send();
  }

  #endDiscarding(): void {
    const done = this.#onDiscarded;
    this.#onDiscarded = undefined;
    done?.(this.#isWhole);
  }

  #hold(bytes: Uint8Array): void {
    this.#held.push(bytes);
    this.#heldBytes += bytes.byteLength;
    if (this.#heldBytes > MAX_HELD_BYTES && !this.#isPaused && !this.#isWhole) {
      this.#isPaused = true;
      this.#res.pause();
    }
  }

  #send(): void {
    const forwarded = this.#forwarded;
    if (forwarded === undefined || this.#isDropped) return;
    while (this.#held.length > 0 && this.#creditBytes > 0) {
      const bytes = this.#held.shift()!;
      this.#heldBytes -= bytes.byteLength;
      this.#creditBytes -= bytes.byteLength;
      this.#charge.give(bytes.byteLength);
      // The other worker charges a small body as well, unless the whole body comes at once.
      forwarded.body(bytes, this.#isWhole && this.#held.length === 0);
    }
    if (this.#heldBytes === 0) this.#resume();
  }

  #resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#res.resume();
  }
}
