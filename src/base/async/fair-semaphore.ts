import { AppError } from '../errors/errors.ts';

export interface FairSemaphoreLimits {
  /** How many pieces of work run at once. */
  readonly width: number;
  /** How many of those may have one key. */
  readonly widthOfKey: number;
  /** How many others with one key may wait. */
  readonly queueOfKey: number;
  /** How many may wait in all; absent where the number of keys is bounded otherwise. */
  readonly queue?: number;
  /** What a caller is told when too much of its key waits. */
  readonly refusal?: string;
}

const REFUSAL = 'The workspace has too many requests of this kind at once. Try again in a moment.';

interface Lane {
  inside: number;
  readonly waiting: (() => void)[];
}

/**
 * Runs at most `width` pieces of work at once, and shares the places among keys so that none waits
 * for long. A key gets only a part of the places. Keys that wait take turns, however much work each
 * of them has brought. The work of one key runs in the order of its arrival.
 */
export class FairSemaphore {
  readonly #limits: FairSemaphoreLimits;
  /** The keys that have work here. Those with waiting work are in the order in which they get the next places. */
  readonly #lanes = new Map<string, Lane>();
  #inside = 0;
  #waiting = 0;

  constructor(limits: FairSemaphoreLimits) {
    this.#limits = limits;
  }

  /**
   * Runs the work when there is room and returns its result. Rejects with `unavailable` when too much waits, of its key or in all, and
   * with the reason of `signal` when that aborts before there is room.
   */
  async pass<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    await this.#enter(key, signal);
    try {
      return await work();
    } finally {
      this.#leave(key);
    }
  }

  /** Returns whether work with this key would run at once. */
  hasRoom(key: string): boolean {
    const { width, widthOfKey } = this.#limits;
    return this.#inside < width && (this.#lanes.get(key)?.inside ?? 0) < widthOfKey;
  }

  #enter(key: string, signal: AbortSignal | undefined): Promise<void> | undefined {
    const { queueOfKey, queue = Number.POSITIVE_INFINITY, refusal = REFUSAL } = this.#limits;
    const lane = this.#lanes.get(key) ?? { inside: 0, waiting: [] };
    if (this.hasRoom(key)) {
      this.#lanes.set(key, lane);
      lane.inside++;
      this.#inside++;
      return undefined;
    }
    if (lane.waiting.length >= queueOfKey || this.#waiting >= queue)
      throw new AppError('unavailable', refusal);
    this.#lanes.set(key, lane);
    this.#waiting++;
    return new Promise((resolve, reject) => {
      const begin = () => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = () => {
        lane.waiting.splice(lane.waiting.indexOf(begin), 1);
        this.#waiting--;
        if (lane.inside === 0 && lane.waiting.length === 0) this.#lanes.delete(key);
        reject(signal!.reason);
      };
      lane.waiting.push(begin);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  }

  #leave(key: string): void {
    const lane = this.#lanes.get(key)!;
    lane.inside--;
    this.#inside--;
    if (lane.inside === 0 && lane.waiting.length === 0) this.#lanes.delete(key);
    this.#admitNext();
  }

  /**
   * Gives the free place to the first waiting key that may have it, and then moves that key behind
   * the others.
   */
  #admitNext(): void {
    for (const [key, lane] of this.#lanes) {
      if (lane.waiting.length === 0 || lane.inside >= this.#limits.widthOfKey) continue;
      this.#lanes.delete(key);
      this.#lanes.set(key, lane);
      lane.inside++;
      this.#inside++;
      this.#waiting--;
      lane.waiting.shift()!();
      return;
    }
  }
}
