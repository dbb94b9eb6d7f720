/** The most milliseconds that the time between two readings of the clock counts. */
export const MAX_STEP_MS = 25;

/**
 * Measures the time during which the process could notice that a connection makes progress. A pause of the event loop counts as
 * one step. After a pause, timers and earlier frames run before the process notices writable connections, so by the wall clock a
 * healthy reader would look stalled.
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
