/** The error for a rule that the server itself has broken. */
class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

/**
 * Throws an error with the broken rule unless `fact` is true. It is for rules that only a fault of the server can break, never for
 * what a client, a kernel, a file or an operator sends. The check stays in production, so `fact` must cost next to nothing.
 * `offender` names the object that breaks the rule.
 */
export function invariant(fact: boolean, rule: string, offender?: string): asserts fact {
  if (!fact) throw new BrokenInvariant(offender === undefined ? rule : `${rule} Broken by: ${offender}.`);
}
