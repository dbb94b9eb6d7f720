/** The time between two readings of the clock counts as this many milliseconds at most. */
export const MAX_STEP_MS = 25;

/**
 * Measures for how long the process has been able to notice that a connection moves. Time in which the event loop stood
 * still counts as one step: after it, what has become writable is noticed only after the timers and the frames that came
 * first. By the wall clock a healthy reader would look stalled then.
 */
export class ActivityClock {
  #nowMs = 0;
  #readAtMs = performance.now();

  /** Returns milliseconds since the clock was made. It goes on only when it is read. */
  read(): number {
    const atMs = performance.now();
    this.#nowMs += Math.min(atMs - this.#readAtMs, MAX_STEP_MS);
    this.#readAtMs = atMs;
    return this.#nowMs;
  }
}
