/**
 * Bounds on JSON that comes from outside, checked on its bytes before anything is parsed: a few megabytes of `[],[],…`
 * would otherwise become gigabytes of heap, and deep nesting would overflow the stack of recursive readers.
 */
export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** How many digits a number may have in a row. */
  readonly maxDigits: number;
}

/** What there is too much of. */
export type JsonExcess = 'depth' | 'values' | 'digits';

const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const BACKSLASH = 0x5c;
/** With this bit `[` becomes `{`, and `]` becomes `}`. */
const BRACE_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Returns which bound the JSON exceeds, or undefined. Strings may have any size. Invalid JSON is left to the parser. */
export function findJsonExcess(json: Buffer, bounds: JsonBounds): JsonExcess | undefined {
  const { maxDepth, maxValues, maxDigits } = bounds;
  let depth = 0;
  let values = 0;
  let digits = 0;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]!;
    if (byte >= ZERO && byte <= NINE) {
      if (++digits > maxDigits) return 'digits';
      continue;
    }
    digits = 0;
    if (byte === QUOTE) i = findStringEnd(json, i + 1);
    else if (byte === COMMA) values++;
    else if ((byte | BRACE_BIT) === OPENING) {
      values++;
      if (++depth > maxDepth) return 'depth';
    } else if ((byte | BRACE_BIT) === CLOSING) depth--;
  }
  return values > maxValues ? 'values' : undefined;
}

/** Returns the index of the quote that ends a string. Most strings are short; in long ones a native search is much faster. */
function findStringEnd(json: Buffer, start: number): number {
  const nearEnd = Math.min(start + 64, json.length);
  let i = start;
  while (i < nearEnd && json[i] !== QUOTE) i += json[i] === BACKSLASH ? 2 : 1;
  if (i < nearEnd) return i;
  for (let quote = json.indexOf(QUOTE, i); quote !== -1; quote = json.indexOf(QUOTE, quote + 1)) {
    let before = quote;
    while (before > i && json[before - 1] === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote;
  }
  return json.length;
}
