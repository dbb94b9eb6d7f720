/** Readers for JSON from an untrusted source. Each returns the value with its type checked, or throws ShapeError. */

export class ShapeError extends Error {
  override readonly name = 'ShapeError';
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asRecord(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw new ShapeError(`${where} is not an object`);
}

export function asText(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  throw new ShapeError(`${where} is not a string`);
}

/** Returns a reader of texts with at most `maxChars` characters. */
export function textUpTo(maxChars: number): (value: unknown, where: string) => string {
  return (value, where) => {
    const text = asText(value, where);
    if (text.length > maxChars) throw new ShapeError(`${where} has more than ${maxChars} characters`);
    return text;
  };
}

export function asNumber(value: unknown, where: string): number {
  if (typeof value === 'number') return value;
  throw new ShapeError(`${where} is not a number`);
}

export function asBoolean(value: unknown, where: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new ShapeError(`${where} is not a boolean`);
}

export function asOneOf<T extends string>(value: unknown, allowed: readonly T[], where: string): T {
  for (const one of allowed) if (one === value) return one;
  throw new ShapeError(`${where} is none of ${allowed.join(', ')}`);
}

export function asList<T>(
  value: unknown,
  item: (value: unknown, where: string) => T,
  where: string,
  maxItems = Number.POSITIVE_INFINITY,
): readonly T[] {
  if (!Array.isArray(value)) throw new ShapeError(`${where} is not a list`);
  if (value.length > maxItems) throw new ShapeError(`${where} has more than ${maxItems} items`);
  return value.map((one: unknown) => item(one, where));
}

/**
 * Returns null for null and for a missing member: marimo sends nulls, other programs leave members
 * out.
 */
export function orNull<T>(
  value: unknown,
  read: (value: unknown, where: string) => T,
  where: string,
): T | null {
  return value === null || value === undefined ? null : read(value, where);
}
