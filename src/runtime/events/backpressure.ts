import { MAX_STEP_MS } from './activity-clock.ts';
import { Listeners } from './listeners.ts';

/** A producer pauses while the lag is above this share of the limit. */
export const PAUSE_SHARE = 1 / 2;
/** A paused producer continues once the lag is at most this share of the limit. */
const RESUME_SHARE = 1 / 4;

/**
 * Decides whether the producer of a stream should pause. It pauses when the lag is above half of the limit, and continues below a
 * quarter. During the pause `recheck` is called regularly, because nothing else reports a subscriber that stalls.
 */
export class Backpressure {
  readonly listeners = new Listeners<boolean>();
  readonly #limitBytes: number;
  readonly #recheck: () => void;
  #isPaused = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(limitBytes: number, recheck: () => void) {
    this.#limitBytes = limitBytes;
    this.#recheck = recheck;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Records the largest lag of a subscriber that is still moving. */
  update(lagBytes: number): void {
    const bound = this.#limitBytes * (this.#isPaused ? RESUME_SHARE : PAUSE_SHARE);
    const shouldPause = lagBytes > bound;
    if (shouldPause) this.#armTimer();
    if (shouldPause === this.#isPaused) return;
    this.#isPaused = shouldPause;
    this.listeners.tell(shouldPause);
  }

  #armTimer(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#recheck();
    }, MAX_STEP_MS).unref();
  }
}
