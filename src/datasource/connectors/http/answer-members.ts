/** Reading JSON that somebody else wrote: every member may be missing or be something else. */

export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

export function textOf(value: unknown, ...path: readonly string[]): string | undefined {
  const found = path.reduce(memberOf, value);
  return typeof found === 'string' ? found : undefined;
}

export function listOf(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = path.reduce(memberOf, value);
  return Array.isArray(found) ? found : [];
}
