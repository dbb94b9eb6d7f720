import { AppError } from '#src/core/errors.ts';

/** Lets `width` pieces of work go on at once and `queueLimit` wait, in their order; whoever comes then is refused. */
export class Turnstile {
  readonly #width: number;
  readonly #queueLimit: number;
  readonly #queue: (() => void)[] = [];
  #inside = 0;

  constructor(width: number, queueLimit: number) {
    this.#width = width;
    this.#queueLimit = queueLimit;
  }

  /** Settles as the work does. Throws `unavailable` when too many wait. */
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
      throw new AppError('unavailable', 'Too much of this is going on. Try again in a moment.');
    }
    return new Promise((resolve) => this.#queue.push(resolve));
  }
}
