/**
 * The memory that lagging subscribers of all streams of the server may use together. Each stream charges its frames from the
 * position of the slowest subscriber on, and the unsent bytes of the connections. The pages of a notebook also charge the encoded
 * outputs that they share. Beyond the limit, the subscribers that lag most are cut off, in any stream.
 *
 * A stream without lagging subscribers charges nothing, and is never examined.
 */
import { invariant } from '#src/base/errors/invariant.ts';

/** One subscriber that lags. */
export interface Laggard {
  /** All bytes that the client of the subscriber has not taken. */
  readonly behindBytes: number;
  /** The part of `behindBytes` that is in memory for this subscriber alone. */
  readonly ownBytes: number;
  cutOff(): void;
}

/** A stream, seen from the budget. */
export interface ChargedStream {
  laggards(): Iterable<Laggard>;
  /** Charges the memory of the stream again. */
  settle(): void;
}

/**
 * Subscribers are cut off until at most this part of the limit is used, so that the next frame does
 * not exceed the limit again.
 */
const TARGET_SHARE = 7 / 8;
/**
 * The largest share of the lagging subscribers that one round cuts off. Frames that several
 * subscribers share are counted again after each round.
 */
const ROUND_SHARE = 1 / 16;

export class StreamBudget {
  readonly #limitBytes: number;
  readonly #charges = new Map<ChargedStream, number>();
  #chargedBytes = 0;
  #isEnforcing = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get chargedBytes(): number {
    return this.#chargedBytes;
  }

  /** Returns whether so many bytes may be kept although no subscriber needs them: the used memory stays below half of the limit. */
  hasRoomFor(bytes: number): boolean {
    return this.#chargedBytes + bytes <= this.#limitBytes / 2;
  }

  /** Records the memory that a stream keeps for lagging subscribers. If the budget is exceeded, cuts subscribers off. */
  charge(stream: ChargedStream, bytes: number): void {
    invariant(bytes >= 0, 'A stream is charged for the bytes that it holds.');
    this.#chargedBytes += bytes - (this.#charges.get(stream) ?? 0);
    if (bytes > 0) this.#charges.set(stream, bytes);
    else this.#charges.delete(stream);
    if (this.#chargedBytes > this.#limitBytes && !this.#isEnforcing) this.#enforce();
  }

  #enforce(): void {
    this.#isEnforcing = true;
    try {
      while (this.#chargedBytes > this.#limitBytes * TARGET_SHARE) if (!this.#cutOffSome()) return;
    } finally {
      this.#isEnforcing = false;
    }
  }

  /** Cuts some subscribers off. Returns whether there were any to cut off. */
  #cutOffSome(): boolean {
    const streams = [...this.#charges.keys()];
    const laggards = streams.flatMap((stream) => [...stream.laggards()]);
    laggards.sort((a, b) => b.behindBytes - a.behindBytes);
    let excessBytes = this.#chargedBytes - this.#limitBytes * TARGET_SHARE;
    for (const laggard of laggards.slice(0, Math.ceil(laggards.length * ROUND_SHARE))) {
      if (excessBytes <= 0) break;
      laggard.cutOff();
      excessBytes -= laggard.ownBytes;
    }
    for (const stream of streams) stream.settle();
    return laggards.length > 0;
  }
}
