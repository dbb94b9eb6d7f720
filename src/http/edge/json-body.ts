import { isUtf8 } from 'node:buffer';
import { AppError } from '#src/core/errors.ts';
import { findJsonExcess, type JsonBounds, type JsonExcess } from '#src/core/json-bounds.ts';
import { invalidRequest } from './violations.ts';

/**
 * Recursive readers come after the parser, and parsing many small values blocks the event loop for seconds. A number with
 * more than 308 digits may exceed a double: it would become null when it is written as JSON again.
 */
const BOUNDS: JsonBounds = { maxDepth: 128, maxValues: 250_000, maxDigits: 308 };
const EXCESSES: Readonly<Record<JsonExcess, string>> = {
  depth: `The body is nested deeper than ${BOUNDS.maxDepth} levels.`,
  values: `The body has more than ${BOUNDS.maxValues} values.`,
  digits: `The body has a number of more than ${BOUNDS.maxDigits} digits.`,
};
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;

/** With the `u` flag this matches a surrogate only when its other half is missing. */
const HALF_SURROGATE = /\p{Surrogate}/u;

/**
 * Returns the value of a JSON body. Throws `malformed_json` for an empty body, invalid UTF-8, a syntax error, nesting
 * beyond 128 levels, more than 250,000 values or a number of more than 308 digits. Throws `invalid_request` for JSON that
 * is never wanted: a `__proto__` member, half a surrogate pair, a number beyond the range of a double.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new AppError('malformed_json', 'The body is empty.');
  if (!isUtf8(bytes)) throw new AppError('malformed_json', 'The body is not valid UTF-8.');
  const excess = bytes.length > BOUNDS.maxDepth ? findJsonExcess(bytes, BOUNDS) : undefined;
  if (excess !== undefined) throw new AppError('malformed_json', EXCESSES[excess]);
  const text = bytes.toString('utf8');
  const value = parse(text);
  // Each of these leaves a trace in the text, so ordinary bodies need not be walked.
  if (bytes.includes('\\u') || bytes.includes('__proto__') || LARGE_EXPONENT.test(text))
    refuseUnwanted(value, '');
  return value;
}

function parse(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    // The parser's own message quotes the body, which may hold credentials.
    throw new AppError('malformed_json', 'The body is not valid JSON.');
  }
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
