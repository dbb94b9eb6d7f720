import type { ChunkRing } from './chunk-ring.ts';
import type { EventSink } from './event-sink.ts';

/** A subscriber that took bytes this recently is moving: slow perhaps, but not stalled. */
export const MOVING_WITHIN_MS = 100;

/**
 * One subscriber's place in a stream: what it is still to be given of the state it missed, then an index into the ring
 * that all share. While its connection takes nothing it is only these few members.
 */
export class Subscriber {
  readonly sink: EventSink;
  /** The next chunk of the ring to write. */
  next = 0;
  /** Whether the connection refuses bytes until it says that it is writable. */
  blocked = false;
  #joined = false;
  #ahead: Iterator<Uint8Array, undefined> | undefined;
  #movedAtMs = 0;

  /** `ahead` is written before anything of the ring and never counts as lag. */
  constructor(sink: EventSink, ahead: Iterator<Uint8Array, undefined>) {
    this.sink = sink;
    this.#ahead = ahead;
  }

  /** Until then nothing is written to it. */
  join(next: number): void {
    this.next = next;
    this.#joined = true;
  }

  /** Whether everything there is was handed to the connection. */
  isCaughtUp(ring: ChunkRing): boolean {
    return this.#joined && this.#ahead === undefined && this.next >= ring.nextIndex;
  }

  lagBytes(ring: ChunkRing): number {
    return this.#joined ? ring.bytesFrom(this.next) : 0;
  }

  /** Writes until the connection refuses or there is no more. */
  pump(ring: ChunkRing): void {
    if (!this.#joined) return;
    while (!this.blocked && this.#ahead !== undefined) {
      const { value } = this.#ahead.next();
      if (value === undefined) this.#ahead = undefined;
      else this.write(value);
    }
    while (!this.blocked && this.next < ring.nextIndex) this.write(ring.at(this.next++).bytes);
  }

  write(bytes: Uint8Array): void {
    if (this.sink.write(bytes)) return;
    this.blocked = true;
    this.#movedAtMs = performance.now();
  }

  /** The connection has taken everything it was given. */
  unblock(): void {
    this.blocked = false;
    this.#movedAtMs = performance.now();
  }

  isMoving(nowMs: number): boolean {
    return nowMs - this.#movedAtMs < MOVING_WITHIN_MS;
  }
}
