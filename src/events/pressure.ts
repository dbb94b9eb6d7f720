import { Listeners } from './listeners.ts';
import { MOVING_WITHIN_MS } from './subscriber.ts';

/**
 * Whether the producer of a stream should pause: above half the limit it should, below a quarter it may go on. While it
 * is paused, `recheck` is called again and again, because a subscriber that stalls says nothing.
 */
export class Pressure {
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

  /** Takes the largest lag that is worth waiting for. */
  update(lagBytes: number): void {
    const bound = this.#isPaused ? this.#limitBytes / 4 : this.#limitBytes / 2;
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
    }, MOVING_WITHIN_MS).unref();
  }
}
