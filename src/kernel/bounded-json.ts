import { ShapeError } from './json-shape.ts';

const DEPTH_LIMIT = 64;
const VALUES_LIMIT = 1_000_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;

/**
 * Parses JSON that nobody vouches for. 64 MiB of `[],[],…` would fill gigabytes of heap and end the server, so nesting
 * (64 levels) and the number of values (a million) are bounded before anything is built; strings may be of any size. So
 * recursive code may walk the result. Throws ShapeError, which never quotes the input.
 */
export function parseBoundedJson(body: Buffer): unknown {
  checkBounds(body);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new ShapeError('a frame that is not JSON'); // the parser's own message quotes the input
  }
}

function checkBounds(body: Buffer): void {
  let depth = 0;
  let values = 0;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i]!;
    if (byte === QUOTE) {
      i = findStringEnd(body, i + 1);
    } else if (byte === COMMA) {
      values++;
    } else if ((byte | 0x20) === 0x7b) {
      // [ or {, which differ in that bit; so do ] and }
      values++;
      if (++depth > DEPTH_LIMIT) throw new ShapeError('a frame that is nested too deeply');
    } else if ((byte | 0x20) === 0x7d) {
      depth--;
    }
  }
  if (values > VALUES_LIMIT) throw new ShapeError('a frame of too many values');
}

/** The index of the quote that ends a string. Most are short; in a long one a native search is ten times as fast. */
function findStringEnd(body: Buffer, start: number): number {
  const nearEnd = Math.min(start + 64, body.length);
  let i = start;
  while (i < nearEnd && body[i] !== QUOTE) i += body[i] === BACKSLASH ? 2 : 1;
  if (i < nearEnd) return i;
  for (let quote = body.indexOf(QUOTE, i); quote !== -1; quote = body.indexOf(QUOTE, quote + 1)) {
    let before = quote;
    while (before > i && body[before - 1] === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote;
  }
  return body.length;
}
