/**
 * Returns a context of these parts, real ones or fakes. Reading another part throws, so that a test names every part that its object
 * uses.
 */
export function testContext<Context extends object>(
  parts: {
    readonly [Name in keyof Context]?: unknown;
  },
): Context {
  const read = (given: object, name: string | symbol) => {
    if (name in given) return Reflect.get(given, name);
    throw new Error(`The context of this test has no ${String(name)}.`);
  };
  return new Proxy(parts, { get: read }) as unknown as Context;
}
