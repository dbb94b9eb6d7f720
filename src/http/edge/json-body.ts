import { isUtf8 } from 'node:buffer';
import { atOnce } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { parseJson } from '#src/base/json/json-parse.ts';
import {
  findJsonExcess,
  type JsonBounds,
  type JsonExcess,
  JsonScan,
  MAX_MEMBERS,
  MAX_PIECE_BYTES,
} from '#src/base/json/json-scan.ts';
import { invalidRequest } from './violations.ts';

/**
 * The depth is limited because later code reads the value recursively, and the number of values because parsing many
 * small ones blocks the event loop for seconds, as reading the names of a large object does. A number with more than 308 digits may exceed a double: it would
 * become null when it is written as JSON again.
 */
const BOUNDS: JsonBounds = {
  maxDepth: 128,
  maxValues: 250_000,
  maxMembers: MAX_MEMBERS,
  maxDigits: 308,
  mayHaveLargeNames: false,
};
const EXCESSES: Readonly<Record<JsonExcess, string>> = {
  depth: `The body is nested deeper than ${BOUNDS.maxDepth} levels.`,
  values: `The body has more than ${BOUNDS.maxValues} values.`,
  members: `The body has an object with more than ${BOUNDS.maxMembers} members.`,
  digits: `The body has a number of more than ${BOUNDS.maxDigits} digits.`,
  name: `The body has a member whose name has more than ${MAX_PIECE_BYTES} bytes.`,
};
const LARGE_EXPONENT = /\d[eE]\+?\d{3}/;

/**
 * Returns the value of a JSON body. Throws `malformed_json` for an empty body, invalid UTF-8, a syntax error, nesting
 * beyond 128 levels, more than 250,000 values, an object of more than 30,000 members, a number of more than 308 digits or a name of more than 64 KiB. Throws
 * `invalid_request` for JSON that is never wanted: a `__proto__` member, half a surrogate pair, a number beyond the range of
 * a double.
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new AppError('malformed_json', 'The body is empty.');
  checkEncoding(bytes);
  if (bytes.length > BOUNDS.maxDepth) refuseExcess(findJsonExcess(bytes, BOUNDS));
  const text = bytes.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notJson();
  }
  // Unwanted JSON leaves one of these traces in the text, so ordinary bodies need not be walked.
  if (bytes.includes('\\u') || bytes.includes('__proto__') || LARGE_EXPONENT.test(text))
    atOnce(refuseUnwanted(value, ''));
  return value;
}

/** Returns the value of a large JSON body, in steps of up to a millisecond. Throws like `parseJsonBody`. */
export function* parseLargeJsonBody(bytes: Buffer): Generator<undefined, unknown> {
  checkEncoding(bytes);
  const scan = new JsonScan(bytes, BOUNDS);
  while (!scan.advance()) yield;
  refuseExcess(scan.excess);
  let value: unknown;
  try {
    value = yield* parseJson(bytes, scan);
  } catch {
    throw notJson();
  }
  yield* refuseUnwanted(value, '');
  return value;
}

function checkEncoding(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new AppError('malformed_json', 'The body is not valid UTF-8.');
}

function refuseExcess(excess: JsonExcess | undefined): void {
  if (excess !== undefined) throw new AppError('malformed_json', EXCESSES[excess]);
}

/** The parser's own message quotes the body, which may hold credentials. */
function notJson(): AppError {
  return new AppError('malformed_json', 'The body is not valid JSON.');
}

/** Members that are walked in one step. */
const MEMBERS_AT_ONCE = 1000;

function* refuseUnwanted(value: unknown, path: string): Generator<undefined> {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw invalidRequest([{ path, message: 'is beyond the range of numbers' }]);
  if (typeof value === 'string' && !value.isWellFormed())
    throw invalidRequest([{ path, message: 'holds half a surrogate pair' }]);
  if (typeof value !== 'object' || value === null) return;
  let count = 0;
  for (const name in value) {
    if (name === '__proto__' || !name.isWellFormed())
      throw invalidRequest([{ path, message: 'has a member whose name is not allowed' }]);
    yield* refuseUnwanted((value as Readonly<Record<string, unknown>>)[name], `${path}/${name}`);
    if (++count % MEMBERS_AT_ONCE === 0) yield;
  }
}
