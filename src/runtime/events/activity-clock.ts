/** The time between two readings of the clock counts as this many milliseconds at most. */
export const MAX_STEP_MS = 25;

/**
 * Measures for how long the process has been able to notice that a connection makes progress. Time
 * in which the event loop stood still counts as one step: afterwards, timers and earlier frames run
 * before the process notices which connections have become writable. By the wall clock a healthy
 * reader would then look stalled.
 */
export class ActivityClock {
  #nowMs = 0;
  #readAtMs = performance.now();

  /** Returns milliseconds since the clock was made. The clock advances only when it is read. */
  read(): number {
    const atMs = performance.now();
    this.#nowMs += Math.min(atMs - this.#readAtMs, MAX_STEP_MS);
    this.#readAtMs = atMs;
    return this.#nowMs;
  }
}
