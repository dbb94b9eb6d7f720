import { isUtf8 } from 'node:buffer';
import { AppError } from '#src/core/errors.ts';
import { invalidRequest } from './violations.ts';

/** Deep enough for any honest document, shallow enough for every recursive reader behind the edge. */
const MAX_DEPTH = 128;
/** Reading a body holds up everyone; millions of tiny values take seconds where one long string takes no time. */
const MAX_VALUES = 250_000;
/** One more, and a number may be beyond what a double holds: it would become null when it is written again. */
const MAX_DIGITS = 308;
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;

/** With the `u` flag a surrogate matches only when its other half is missing. */
const HALF_SURROGATE = /\p{Surrogate}/u;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const ZERO = 0x30;
const NINE = 0x39;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * The value of a JSON body. Throws `malformed_json` for an empty body, invalid UTF-8, a syntax error or nesting beyond
 * 128 levels, more than 250,000 values or a number of more than 308 digits, and `invalid_request` for what is JSON but
 * never wanted: a `__proto__` member, half a surrogate pair, a number beyond the range of a double.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new AppError('malformed_json', 'The body is empty.');
  if (!isUtf8(bytes)) throw new AppError('malformed_json', 'The body is not valid UTF-8.');
  requireModestShape(bytes);
  const text = bytes.toString('utf8');
  const value = parse(text);
  // Each of them leaves a trace in the text, so ordinary bodies are not walked.
  if (bytes.includes('\\u') || bytes.includes('__proto__') || LARGE_EXPONENT.test(text))
    refuseUnwanted(value, '');
  return value;
}

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    // The parser's message quotes the body, which may hold credentials.
    throw new AppError('malformed_json', 'The body is not valid JSON.');
  }
}

/** Counts outside of strings: `JSON.parse` takes any depth, but what reads its value recursively does not. */
function requireModestShape(bytes: Buffer): void {
  if (bytes.length <= MAX_DEPTH) return;
  let depth = 0;
  let values = 0;
  let digits = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte >= ZERO && byte <= NINE) {
      if (++digits > MAX_DIGITS)
        throw new AppError('malformed_json', `The body has a number of more than ${MAX_DIGITS} digits.`);
      continue;
    }
    digits = 0;
    if (byte === QUOTE) i = endOfString(bytes, i + 1);
    else if (byte === COMMA) values++;
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      values++;
      if (++depth > MAX_DEPTH)
        throw new AppError('malformed_json', `The body is nested deeper than ${MAX_DEPTH} levels.`);
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--;
  }
  if (values > MAX_VALUES)
    throw new AppError('malformed_json', `The body has more than ${MAX_VALUES} values.`);
}

function endOfString(bytes: Buffer, start: number): number {
  for (let i = start; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === BACKSLASH) i++;
    else if (byte === QUOTE) return i;
  }
  return bytes.length;
}

function refuseUnwanted(value: unknown, path: string): void {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest([{ path, message: 'is beyond the range of numbers' }]);
  if (typeof value === 'string') {
    if (HALF_SURROGATE.test(value)) throw invalidRequest([{ path, message: 'holds half a surrogate pair' }]);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (name === '__proto__' || HALF_SURROGATE.test(name)) {
      throw invalidRequest([{ path, message: 'has a member whose name is not allowed' }]);
    }
    refuseUnwanted(member, `${path}/${name}`);
  }
}
