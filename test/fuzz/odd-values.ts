import type { SeededRandom } from '#test/support/random.ts';

/** Values that code may not expect. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, -0, 2 ** 53, 2 ** 31, '', ' ', '0', 'null', '\0', '\ud83d', '😀'],
  ...['../../etc/passwd', '%00', '__proto__', 'constructor', '1'.repeat(300), 'é'.repeat(200), [], {}, [[]]],
  ...[[null], { a: {} }, { constructor: 1 }, '2024-01-01T00:00:00Z', '+275760-09-13T00:00:00.001Z', "'; --"],
];

/** Returns a value that code may not expect. */
export function odd(random: SeededRandom): unknown {
  return random.pick(ODD);
}

/** Returns a copy of `value` in which some members, at any depth, are omitted, duplicated or replaced by odd values. */
export function mutated(random: SeededRandom, value: unknown, probability = 0.15): unknown {
  if (random.is(probability)) return odd(random);
  if (Array.isArray(value)) {
    const items = value.flatMap((item) => {
      const one = mutated(random, item, probability);
      return random.is(probability / 2) ? [] : random.is(probability / 2) ? [one, one] : [one];
    });
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value)
    .filter(() => !random.is(probability / 2))
    .map(([name, member]) => [name, mutated(random, member, probability)] as const);
  if (random.is(probability / 2)) members.push([String(odd(random)), odd(random)]);
  return Object.fromEntries(members);
}
