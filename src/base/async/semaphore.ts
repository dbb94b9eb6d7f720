import { AppError } from '../errors/errors.ts';

/** Runs at most `width` pieces of work at once. At most `queueLimit` others wait, in their order; more are rejected. */
export class Semaphore {
  readonly #width: number;
  readonly #queueLimit: number;
  readonly #queue: (() => void)[] = [];
  #inside = 0;

  constructor(width: number, queueLimit: number) {
    this.#width = width;
    this.#queueLimit = queueLimit;
  }

  /** Runs the work when there is room and returns its result. Rejects with `unavailable` when too many wait. */
  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#width) this.#inside++;
    else await this.#wait();
    try {
      return await work();
    } finally {
      const next = this.#queue.shift();
      if (next === undefined) this.#inside--;
      else next();
    }
  }

  #wait(): Promise<void> {
    if (this.#queue.length >= this.#queueLimit) {
      throw new AppError(
        'unavailable',
        'The server has too many requests of this kind at once. Try again in a moment.',
      );
    }
    return new Promise((resolve) => this.#queue.push(resolve));
  }
}
