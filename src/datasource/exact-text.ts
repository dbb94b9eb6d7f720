/**
 * Texts whose published pattern is weaker than the server's check. Clients check connections with the published schema,
 * so its patterns use only the common subset of the regular expressions of ECMAScript, Python, RE2 and Java.
 */
import { type TStringOptions, Type } from 'typebox';

/** Returns the schema of a text that must match the published `pattern` and also `exact`, which is not published. */
export function exactText(options: TStringOptions & { readonly pattern: string }, exact: RegExp) {
  return Type.Refine(
    Type.String(options),
    (value) => typeof value !== 'string' || exact.test(value),
    () => 'does not have the required format',
  );
}
