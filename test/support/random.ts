/** A pseudo-random sequence determined by its seed (mulberry32), so that a failure can be repeated. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns the next number of at least 0 and below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns true with this probability. */
  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns a whole number of at least 0 and below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  /** Returns one of `items`; throws when there is none. */
  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new Error('There is nothing to choose from.');
    return items[this.below(items.length)] as T;
  }

  /** Returns the items in another order. */
  shuffled<T>(items: readonly T[]): T[] {
    const list = [...items];
    for (let i = list.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [list[i], list[j]] = [list[j] as T, list[i] as T];
    }
    return list;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }

  /** Returns another sequence, which does not depend on how much of this one is used later. */
  fork(): SeededRandom {
    return new SeededRandom(this.below(2 ** 32));
  }
}
