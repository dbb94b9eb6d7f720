/**
 * Integers beyond 2⁵³ in JSON, which `JSON.parse` would round. Before the JSON is parsed they are
 * turned into strings that begin with a null character. (Revivers of `JSON.parse` get the digits
 * only from Node.js 22 on.)
 */
const MARK = '\0';
const MARKED = /^\0-?\d+$/;
const MARKED_IN_JSON = /"\\u0000(-?\d+)"/g;
const OPENING = Buffer.from('"\\u0000');
const CLOSING = Buffer.from('"');

/** An integer with fewer digits is exact as a double. */
const MIN_DIGITS = 16;
/** No database has integers with more digits. */
const MAX_DIGITS = 100;
const BYTES_AT_ONCE = 128 * 1024;
const QUOTE = 0x22;
const MINUS = 0x2d;
const BACKSLASH = 0x5c;
const NUMBER = new Set(Buffer.from('+-.0123456789eE'));
const INTEGER = /^-?\d+$/;

/** Returns the JSON with its long integers marked, in steps of up to a millisecond. */
export function* markLongIntegers(json: Buffer): Generator<undefined, Buffer> {
  const parts: Buffer[] = [];
  let from = 0;
  let pause = BYTES_AT_ONCE;
  for (let at = 0; at < json.length; ) {
    if (at >= pause) {
      pause = at + BYTES_AT_ONCE;
      yield;
    }
    const byte = json[at]!;
    if (byte === QUOTE) at = endOfString(json, at);
    else if (byte === MINUS || (byte >= 0x30 && byte <= 0x39)) {
      const end = endOfNumber(json, at);
      if (
        end - at >= MIN_DIGITS &&
        end - at <= MAX_DIGITS &&
        INTEGER.test(json.toString('latin1', at, end))
      ) {
        parts.push(json.subarray(from, at), OPENING, json.subarray(at, end), CLOSING);
        from = end;
      }
      at = end;
    } else at++;
  }
  return parts.length === 0 ? json : Buffer.concat([...parts, json.subarray(from)]);
}

/** Returns the value, or its digits when it is a marked integer. */
export function withoutMark(value: unknown): unknown {
  return typeof value === 'string' && value.startsWith(MARK) && MARKED.test(value) ? value.slice(1) : value;
}

/** Returns the JSON of a value with the marked integers in it as numbers. */
export function jsonWithLongIntegers(value: unknown): string {
  return JSON.stringify(value).replace(MARKED_IN_JSON, '$1');
}

function endOfNumber(json: Buffer, start: number): number {
  let end = start + 1;
  while (end < json.length && NUMBER.has(json[end]!)) end++;
  return end;
}

function endOfString(json: Buffer, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return json.length;
    let before = quote;
    while (before > at && json[before - 1] === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}
