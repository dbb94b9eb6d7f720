/**
 * Texts whose published pattern says less than what is accepted. Clients check connections with the published schema, so its
 * patterns are written in what the regular expressions of ECMAScript, Python, RE2 and Java have in common.
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
