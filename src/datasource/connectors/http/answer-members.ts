/** Reads JSON from untrusted services: every member may be missing or have another type. */

/** Returns a member of an object, or `undefined`. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

/** Returns the text at a path of members, or `undefined`. */
export function textMember(value: unknown, ...path: readonly string[]): string | undefined {
  const found = path.reduce(memberOf, value);
  return typeof found === 'string' ? found : undefined;
}

/** Returns the list at a path of members; an empty list when there is none. */
export function listMember(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = path.reduce(memberOf, value);
  return Array.isArray(found) ? found : [];
}
