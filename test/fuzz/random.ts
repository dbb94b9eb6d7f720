/** Chance that a seed decides, so that what it found can be found again. */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  of<T>(values: readonly T[]): T {
    const value = values[this.below(values.length)];
    if (value === undefined && values.length === 0) throw new Error('There is nothing to choose from.');
    return value as T;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }
}

/** Values that something somewhere does not expect. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, -0, 2 ** 53, 2 ** 31, '', ' ', '0', 'null', '\0', '\ud83d', '😀'],
  ...['../../etc/passwd', '%00', '__proto__', 'constructor', '1'.repeat(300), 'é'.repeat(200), [], {}, [[]]],
  ...[[null], { a: {} }, { constructor: 1 }, '2024-01-01T00:00:00Z', '+275760-09-13T00:00:00.001Z', "'; --"],
];

export function odd(chance: Chance): unknown {
  return chance.of(ODD);
}

/** `value` with some of its members, at any depth, taken away, doubled or replaced by odd ones. */
export function mutated(chance: Chance, value: unknown, probability = 0.15): unknown {
  if (chance.is(probability)) return odd(chance);
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => {
      const one = mutated(chance, item, probability);
      return chance.is(probability / 2) ? [] : chance.is(probability / 2) ? [one, one] : [one];
    });
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(() => !chance.is(probability / 2))
    .map(([name, member]) => [name, mutated(chance, member, probability)] as const);
  if (chance.is(probability / 2)) members.push([String(odd(chance)), odd(chance)]);
  return Object.fromEntries(members);
}
