/**
 * Decides how long after its end a worker is replaced. Gives up when five workers have ended within a minute before
 * they served.
 */

const PAUSES_MS = [0, 250, 1000, 2500, 5000];
/** While no worker serves, every pause is an outage. */
const MAX_OUTAGE_PAUSE_MS = 250;
/** A worker that has lived this long was started well. When it ends, the count of failed starts begins again. */
const SOUND_AFTER_MS = 30_000;
const MAX_FAILED_STARTS = 5;
const FAILED_WITHIN_MS = 60_000;

export class Restarts {
  readonly #now: () => number;
  #ends = 0;
  #failed: number[] = [];

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Notes that a worker has ended. Returns the milliseconds until another one is started, or
   * undefined when another one would probably not start either.
   */
  next({
    livedMs,
    hasServed,
    isAnyServing,
  }: {
    readonly livedMs: number;
    readonly hasServed: boolean;
    /** Whether another worker serves meanwhile. */
    readonly isAnyServing: boolean;
  }): number | undefined {
    if (livedMs > SOUND_AFTER_MS) this.#ends = 0;
    if (!hasServed) {
      const since = this.#now() - FAILED_WITHIN_MS;
      this.#failed = [...this.#failed.filter((at) => at > since), this.#now()];
      if (this.#failed.length >= MAX_FAILED_STARTS) return undefined;
    }
    const pauseMs = PAUSES_MS[Math.min(this.#ends++, PAUSES_MS.length - 1)]!;
    return isAnyServing ? pauseMs : Math.min(pauseMs, MAX_OUTAGE_PAUSE_MS);
  }
}
