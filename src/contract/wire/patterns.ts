/** The patterns of texts, each with a description in words for error messages, because a regular expression explains little. */

/** Filled while this module is loaded. */
const WORDS = new Map<string, string>();

function described(pattern: string, words: string): string {
  WORDS.set(pattern, words);
  return pattern;
}

export const SLUG = described(
  '^[A-Za-z0-9][A-Za-z0-9._-]*$',
  'must consist of letters, digits, dots, underscores and hyphens, and begin with a letter or a digit',
);
export const USER_ID = described(
  '^[A-Za-z0-9._@-]{1,128}$',
  'must be 1 to 128 letters, digits, dots, underscores, hyphens and @',
);
export const GRANT_SUBJECT = described(
  '^(user:[A-Za-z0-9._@-]{1,128}|role:(editor|viewer))$',
  'must be user: and the id of a user, role:editor, or role:viewer',
);
/** The name of an environment variable. */
export const VARIABLE_NAME = described(
  '^[A-Za-z_][A-Za-z0-9_]*$',
  'must consist of letters, digits and underscores, and not begin with a digit',
);
/** A name of a cell in Python, or none. */
export const CELL_NAME = described(
  '^([A-Za-z_][A-Za-z0-9_]*)?$',
  'must consist of letters, digits and underscores, and not begin with a digit',
);
export const ONE_LINE = described('^[^\\x00-\\x1f\\x7f]+$', 'must not contain control characters');
export const WITHOUT_NUL = described('^[^\\x00]*$', 'must not contain the character U+0000');
export const VISIBLE_ASCII = described('^[\\x21-\\x7e]+$', 'must consist of visible ASCII characters');
export const HTTP_URL = described(
  '^https?://',
  'must be an address that begins with https:// or http://, such as https://receiver.example.com/troupe',
);

/** Returns how a text must be that does not match the pattern, such as `must not contain control characters`. */
export function wordsOf(pattern: string): string {
  return WORDS.get(pattern) ?? `must match ${pattern}`;
}
