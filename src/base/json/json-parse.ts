/**
 * Parses large JSON in pieces: a single `JSON.parse` of 16 MiB would stop the server for too long.
 */
import { JsonScan, type LargeValue, MAX_PIECE_BYTES } from './json-scan.ts';

const QUOTE = 0x22;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
/** The length of an escape sequence such as `\u00e4` after its backslash. */
const MAX_ESCAPED_BYTES = 5;
const MAX_CHARACTER_BYTES = 4;
/** The bytes that JSON may have between values. */
const BLANKS: readonly number[] = [0x20, 0x09, 0x0a, 0x0d];
const BLANKS_AT_ONCE = 64 * 1024;

/**
 * Returns the value that `JSON.parse` returns, in steps of up to a millisecond. `scan` has reached the end of these
 * bytes. Throws `SyntaxError`.
 */
export function* parseJson(json: Buffer, scan: JsonScan): Generator<undefined, unknown> {
  if (scan.isUnbalanced) throw new SyntaxError('Brackets or quotes do not match.');
  const { large } = scan;
  if (large === undefined) return yield* parseSmall(json);
  // Only blanks may be around the value. Read as Latin-1, megabytes of other characters are refused without being decoded.
  JSON.parse(`${json.toString('latin1', 0, large.start)}null${json.toString('latin1', large.end)}`);
  return yield* parseLarge(json, large);
}

/**
 * Parses JSON without a large value: a small value, possibly with megabytes of blanks around it, or bytes
 * that are not JSON.
 */
function* parseSmall(json: Buffer): Generator<undefined, unknown> {
  let [start, end] = [0, json.length];
  while (end - start > MAX_PIECE_BYTES && BLANKS.includes(json[start]!))
    if (++start % BLANKS_AT_ONCE === 0) yield;
  while (end - start > MAX_PIECE_BYTES && BLANKS.includes(json[end - 1]!))
    if (--end % BLANKS_AT_ONCE === 0) yield;
  // A longer value could only be a number, which is ASCII.
  return JSON.parse(json.toString(end - start > MAX_PIECE_BYTES ? 'latin1' : 'utf8', start, end));
}

const NO_BOUNDS = {
  maxDepth: Number.POSITIVE_INFINITY,
  maxValues: Number.POSITIVE_INFINITY,
  maxMembers: Number.POSITIVE_INFINITY,
  maxDigits: Number.POSITIVE_INFINITY,
  mayHaveLargeNames: true,
};

/** Returns the value of JSON that is trusted, in steps of up to a millisecond. */
export function* parseTrustedJson(bytes: Uint8Array): Generator<undefined, unknown> {
  const json = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (json.length <= MAX_PIECE_BYTES) return JSON.parse(json.toString('utf8'));
  const scan = new JsonScan(json, NO_BOUNDS);
  while (!scan.advance()) yield;
  return yield* parseJson(json, scan);
}

function textOf(json: Buffer): (start: number, end: number) => string {
  return (start, end) => json.toString('utf8', start, end);
}

function* parseLarge(json: Buffer, large: LargeValue): Generator<undefined, unknown> {
  if (json[large.start] === QUOTE) return yield* parseString(json, large);
  return json[large.start] === BRACKET ? yield* parseArray(json, large) : yield* parseObject(json, large);
}

/**
 * One stretch of a large container: from one comma to the next, or between a comma and the start or
 * end of the container.
 */
interface Stretch {
  readonly start: number;
  readonly end: number;
  readonly member: LargeValue | undefined;
}

function* stretchesOf({ start, end, parts }: LargeValue): Generator<Stretch> {
  let from = start + 1;
  let member: LargeValue | undefined;
  for (const part of parts) {
    if (typeof part === 'object') {
      member = part;
      continue;
    }
    yield { start: from, end: part, member };
    from = part + 1;
    member = undefined;
  }
  yield { start: from, end: end - 1, member };
}

function* parseArray(json: Buffer, large: LargeValue): Generator<undefined, unknown[]> {
  const text = textOf(json);
  const close = text(large.end - 1, large.end);
  const items: unknown[] = [];
  for (const { start, end, member } of stretchesOf(large)) {
    const around =
      member === undefined ? text(start, end) : `${text(start, member.start)}null${text(member.end, end)}`;
    const found = JSON.parse(`[${around}${close}`) as unknown[];
    if (member !== undefined) items.push(yield* parseLarge(json, member));
    else if (found.length > 0 || large.parts.length === 0) for (const item of found) items.push(item);
    else throw new SyntaxError('A member is missing.');
    yield;
  }
  return items;
}

function* parseObject(json: Buffer, large: LargeValue): Generator<undefined, object> {
  const text = textOf(json);
  const close = text(large.end - 1, large.end);
  const whole: Record<string, unknown> = {};
  for (const { start, end, member } of stretchesOf(large)) {
    const around =
      member === undefined ? text(start, end) : `${text(start, member.start)}null${text(member.end, end)}`;
    const found = JSON.parse(`{${around}${close}`) as Readonly<Record<string, unknown>>;
    const names = Object.keys(found);
    if (names.length === 0 && large.parts.length > 0) throw new SyntaxError('A member is missing.');
    const value = member === undefined ? undefined : yield* parseLarge(json, member);
    for (const name of names) setMember(whole, name, member === undefined ? found[name] : value);
    yield;
  }
  return whole;
}

/** Sets an own member of any name, as `JSON.parse` does. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value;
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function* parseString(json: Buffer, { start, end }: LargeValue): Generator<undefined, string> {
  const pieces: string[] = [];
  const last = end - 1;
  for (let from = start + 1; from < last; ) {
    const to = from + MAX_PIECE_BYTES >= last ? last : placeToCut(json, from, from + MAX_PIECE_BYTES);
    pieces.push(JSON.parse(`"${json.toString('utf8', from, to)}"`) as string);
    from = to;
    yield;
  }
  return pieces.join('');
}

/** Returns a place at or shortly before `near` that is in no escape sequence and in no UTF-8 sequence. */
function placeToCut(json: Buffer, start: number, near: number): number {
  const backslash = json.subarray(near - MAX_ESCAPED_BYTES, near).lastIndexOf(BACKSLASH);
  if (backslash !== -1) {
    const at = near - MAX_ESCAPED_BYTES + backslash;
    let run = at;
    while (run > start && json[run - 1] === BACKSLASH) run--;
    if ((at - run) % 2 === 0) return at;
  }
  for (let at = near; at > near - MAX_CHARACTER_BYTES; at--) if ((json[at]! & 0xc0) !== 0x80) return at;
  return near;
}
