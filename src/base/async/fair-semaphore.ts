import { AppError } from '../errors/errors.ts';
import { invariant } from '../errors/invariant.ts';

export interface FairSemaphoreLimits {
  /** How many pieces of work run at once. */
  readonly width: number;
  /** How many pieces of running work may have the same key. */
  readonly widthOfKey: number;
  /** How many pieces of work with the same key may wait. */
  readonly queueOfKey: number;
  /** How many may wait in all; absent where the number of keys is bounded otherwise. */
  readonly queue?: number;
  /** The error for a caller when too much of its key waits. */
  readonly refusal?: string;
  /** Whether a key that has no place gets one at once, even if all places are taken. */
  readonly alwaysOne?: boolean;
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
  /**
   * How many places are taken. Only this class changes the number. It is a field and not a method, because
   * requests read it when they begin.
   */
  taken = 0;
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

  /** Returns whether work with this key would run at once. It is false while work of the key waits. */
  hasRoom(key: string, inside = this.#lanes.get(key)?.inside ?? 0): boolean {
    const { width, widthOfKey, alwaysOne } = this.#limits;
    return (inside === 0 && alwaysOne === true) || (this.taken < width && inside < widthOfKey);
  }

  /** Takes a place that the caller gives back by disposing of it; undefined when there is no room. */
  tryHold(key: string): Disposable | undefined {
    if (!this.hasRoom(key)) return undefined;
    this.#take(key);
    return this.#heldPlace(key);
  }

  /** Resolves with a place when there is room. The caller gives it back by disposing of it. Rejects as `pass` does. */
  async hold(key: string, signal?: AbortSignal): Promise<Disposable> {
    signal?.throwIfAborted();
    await this.#enter(key, signal);
    return this.#heldPlace(key);
  }

  #take(key: string): void {
    const lane = this.#lanes.get(key) ?? { inside: 0, waiting: [] };
    this.#lanes.set(key, lane);
    lane.inside++;
    this.taken++;
  }

  #heldPlace(key: string): Disposable {
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        invariant(isHeld, 'A place is given back once.', key);
        isHeld = false;
        this.#leave(key);
      },
    };
  }

  #enter(key: string, signal: AbortSignal | undefined): Promise<void> | undefined {
    const { queueOfKey, queue = Number.POSITIVE_INFINITY, refusal = REFUSAL } = this.#limits;
    if (this.hasRoom(key)) {
      this.#take(key);
      return undefined;
    }
    const lane = this.#lanes.get(key) ?? { inside: 0, waiting: [] };
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
    this.taken--;
    if (lane.inside === 0 && lane.waiting.length === 0) this.#lanes.delete(key);
    if (lane.inside === 0 && lane.waiting.length > 0 && this.#limits.alwaysOne === true)
      this.#admit(key, lane); // before all other waiting keys, because this key has lost its only place
    else this.#admitNext();
  }

  /** Gives the free place to the first waiting key that may have it. */
  #admitNext(): void {
    for (const [key, lane] of this.#lanes) {
      if (lane.waiting.length === 0 || !this.hasRoom(key, lane.inside)) continue;
      this.#admit(key, lane);
      return;
    }
  }

  /** Gives a place to a key that waits, and moves the key after the others. */
  #admit(key: string, lane: Lane): void {
    this.#lanes.delete(key);
    this.#lanes.set(key, lane);
    lane.inside++;
    this.taken++;
    this.#waiting--;
    lane.waiting.shift()!();
  }
}
