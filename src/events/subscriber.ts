import type { Opening } from './catch-up.ts';
import type { ChunkRing } from './chunk-ring.ts';
import type { EventSink } from './event-sink.ts';
import { joinFrames, PIECE_BYTES } from './frame.ts';

/** A subscriber that took bytes this recently, by the activity clock, is moving: slow perhaps, but not stalled. */
const MOVING_WITHIN_MS = 100;

/**
 * One subscriber's place in a stream: what it is still to be given of the state it missed, then an index into the ring
 * that all share. While its connection takes nothing it is only these few members, the rest of a frame, and what the
 * connection has not sent: no more than one piece, for a frame that is larger is handed over in pieces.
 */
export class Subscriber {
  readonly sink: EventSink;
  /** Whether it only looks. */
  readonly observes: boolean;
  /** The next chunk of the ring to write. */
  next = 0;
  /** Whether the connection refuses bytes until it says that it is writable. */
  blocked = false;
  #joined = false;
  #ahead: Iterator<Uint8Array, undefined> | undefined;
  /** What is still to be written of a frame that is larger than a piece. */
  #rest: Uint8Array | undefined;
  #isRestShared = false;
  #unsentBytes = 0;
  #hasMoved = false;
  #heldBytes = 0;
  #movedAtMs = 0;

  constructor(sink: EventSink, observes: boolean) {
    this.sink = sink;
    this.observes = observes;
  }

  /** Until then nothing is written to it. The opening is written before anything of the ring and never counts as lag. */
  join(next: number, { frames, heldBytes }: Opening): void {
    this.next = next;
    this.#ahead = joinFrames(frames);
    this.#heldBytes = heldBytes;
    this.#joined = true;
  }

  /** Whether everything there is was handed to the connection. */
  isCaughtUp(ring: ChunkRing): boolean {
    return (
      this.#joined && this.#ahead === undefined && this.#rest === undefined && this.next >= ring.nextIndex
    );
  }

  /** Yields what is still to be handed over of the frame that the subscriber is in, in pieces; nothing between frames. */
  *restOfFrame(): Generator<Uint8Array> {
    for (
      let rest = this.#rest;
      rest !== undefined && rest.byteLength > 0;
      rest = rest.subarray(PIECE_BYTES)
    ) {
      yield rest.subarray(0, PIECE_BYTES);
    }
  }

  /** What was published and is still to be handed over. */
  lagBytes(ring: ChunkRing): number {
    if (!this.#joined) return 0;
    return ring.bytesFrom(this.next) + (this.#isRestShared ? (this.#rest?.byteLength ?? 0) : 0);
  }

  /** What is in memory for this subscriber alone: what its connection may not have sent, the frame it is in, its opening. */
  get ownBytes(): number {
    return this.#heldBytes + this.#unsentBytes + (this.#isRestShared ? 0 : (this.#rest?.byteLength ?? 0));
  }

  /** Writes until the connection refuses or there is no more. */
  pump(ring: ChunkRing): void {
    if (!this.#joined) return;
    if (this.#rest !== undefined) this.#writeRest();
    while (!this.blocked && this.#ahead !== undefined) {
      const { value } = this.#ahead.next();
      if (value === undefined) {
        this.#ahead = undefined;
        this.#heldBytes = 0;
      } else if (value.length <= PIECE_BYTES) this.write(value);
      else this.#writeLarge(value, false);
    }
    while (!this.blocked && this.next < ring.nextIndex) {
      const { bytes } = ring.at(this.next++);
      if (bytes.length <= PIECE_BYTES) this.write(bytes);
      else this.#writeLarge(bytes, true);
    }
  }

  write(bytes: Uint8Array): void {
    if (this.sink.write(bytes)) return;
    this.blocked = true;
    this.#unsentBytes = bytes.byteLength;
    this.#hasMoved = true;
  }

  /** The connection has taken everything it was given. */
  unblock(): void {
    this.blocked = false;
    this.#unsentBytes = 0;
    this.#hasMoved = true;
  }

  /** Returns the next byte of the frame that is being written, which counts as written then; undefined between frames. */
  takeByte(): Uint8Array | undefined {
    const rest = this.#rest;
    if (rest === undefined) return undefined;
    this.#rest = rest.byteLength > 1 ? rest.subarray(1) : undefined;
    return rest.subarray(0, 1);
  }

  /** Whether it took bytes lately. `nowMs` is read from the activity clock of its stream. */
  isMoving(nowMs: number): boolean {
    if (this.#hasMoved) this.#movedAtMs = nowMs;
    this.#hasMoved = false;
    return nowMs - this.#movedAtMs < MOVING_WITHIN_MS;
  }

  #writeLarge(bytes: Uint8Array, isShared: boolean): void {
    this.#rest = bytes;
    this.#isRestShared = isShared;
    this.#writeRest();
  }

  #writeRest(): void {
    while (!this.blocked && this.#rest !== undefined) {
      const rest = this.#rest;
      this.#rest = rest.byteLength > PIECE_BYTES ? rest.subarray(PIECE_BYTES) : undefined;
      this.write(rest.subarray(0, PIECE_BYTES));
    }
  }
}
