import { AppError } from '#src/base/errors/errors.ts';

/** How many requests to one session may wait. */
export const MAX_WAITING = 100;

interface Line {
  waiting: number;
  /** Resolves when the last request in the line has finished its turn. */
  last: Promise<void>;
}

/** Requests that have their turns one after the other, in the order in which they came, for each session. */
export class WaitingLine {
  readonly #what: string;
  readonly #lines = new Map<string, Line>();

  /** `what` is the kind of requests, for the error message. */
  constructor(what: string) {
    this.#what = what;
  }

  /**
   * Resolves with the result of `turn`, which is called after the turns of all earlier requests.
   * Rejects with `quota_exceeded`.
   */
  async enter<T>(key: string, turn: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(key) ?? { waiting: 0, last: Promise.resolve() };
    if (line.waiting >= MAX_WAITING) {
      const detail = `${MAX_WAITING} requests for ${this.#what} of this notebook are already waiting.`;
      throw new AppError('quota_exceeded', detail, { headers: { 'retry-after': '1' } });
    }
    this.#lines.set(key, line);
    line.waiting++;
    const mine = line.last.then(turn);
    line.last = mine.then(
      () => undefined,
      () => undefined,
    );
    try {
      return await mine;
    } finally {
      line.waiting--;
      if (line.waiting === 0 && this.#lines.get(key) === line) this.#lines.delete(key);
    }
  }
}
