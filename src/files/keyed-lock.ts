/** Does one thing at a time for each key, in the order of the calls. Keeps nothing of a key that nobody uses. */
export class KeyedLock {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves with the result of `work`, which begins when all earlier work for the key has ended. */
  async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = before === undefined ? work() : before.then(work);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, ended);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
    }
  }
}
