/** Kinds of texts on which code is slow or wrong that was written for ordinary ones. */

/** Returns a text of at most `size` characters (UTF-16 units) that is made of repetitions of `piece`. */
function repeated(piece: string): (size: number) => string {
  return (size) => piece.repeat(Math.floor(size / piece.length));
}

/** The same between two letters: a pattern that looks for the run's end looks again from each of its characters. */
function between(piece: string): (size: number) => string {
  return (size) => `a${piece.repeat(Math.max(0, Math.floor((size - 2) / piece.length)))}b`;
}

/** Repetitions of `opening`, and as many of `closing`. */
function nested(opening: string, closing: string): (size: number) => string {
  return (size) => {
    const depth = Math.floor(size / (opening.length + closing.length));
    return opening.repeat(depth) + closing.repeat(depth);
  };
}

/** The kinds by their names. Each makes a text that is as long as `size` allows. */
export const BAD_TEXTS: Readonly<Record<string, (size: number) => string>> = {
  blanks: between(' '),
  tabs: between('\t'),
  'line ends': between('\r\n'),
  'blank lines': between('\n'),
  'wide blanks': between('\u00a0\u2003\u3000'),
  slashes: between('/'),
  backslashes: between('\\'),
  dots: between('.'),
  'parent folders': repeated('../'),
  quotes: between('"'),
  apostrophes: between("'"),
  backquotes: between('`'),
  commas: between(','),
  semicolons: between(';'),
  'equals signs': (size) => 'A'.slice(0, size) + '='.repeat(Math.max(0, size - 1)),
  parentheses: nested('(', ')'),
  brackets: nested('[', ']'),
  braces: nested('{', '}'),
  'open brackets': repeated('([{<'),
  tags: nested('<a b="', '</a>'),
  digits: repeated('9'),
  signs: between('+-'),
  exponents: (size) => `1e${'9'.repeat(Math.max(0, size - 2))}`.slice(0, size),
  'digits of other scripts': repeated('٣४๕'),
  'percent signs': between('%'),
  'percent escapes': repeated('%00%2f%zz'),
  'half surrogates': repeated('\ud83d'),
  'astral characters': repeated('𝔘😀'),
  'combining marks': (size) => `e${'\u0301'.repeat(Math.max(0, size - 1))}`.slice(0, size),
  'marks of direction': between('\u202e\u2067\u200f'),
  'NUL characters': between('\0'),
  'byte order marks': repeated('\ufeff'),
  'one long word': repeated('a'),
  'words and separators': repeated('a-b_c.d '),
  'JSON in a text': nested('{"a":[', ']}'),
  base64: repeated('QUJD+/w='),
  dates: repeated('2026-11-28T23:59:60.999Z,'),
  'escape sequences': repeated('\u001b[31m\u001b]52;c;'),
  'capital letters that grow': repeated('İßﬃ'),
};

/** Returns a text of the kind with at most `size` characters and `bytes` bytes of UTF-8. */
export function badText(kind: string, size: number): string {
  const make = BAD_TEXTS[kind];
  if (make === undefined) throw new Error(`There is no kind of text with the name ${kind}.`);
  return make(size);
}
