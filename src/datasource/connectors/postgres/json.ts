/**
 * Converts rows of PostgreSQL into the JSON that kernels read, from bytes to bytes. No JavaScript values are created,
 * because that would be most of the work for a large result.
 */
import { isUtf8 } from 'node:buffer';
import type { ColumnType, ResultColumn } from '../../rows.ts';
import { MESSAGE_HEAD_BYTES } from './messages.ts';

const [TEXT, NUMBER, BOOLEAN, BYTES, MOMENT, LEFT_OUT] = [0, 1, 2, 3, 4, 5];
const WAYS: Readonly<Partial<Record<ColumnType, number>>> = {
  integer: NUMBER,
  float: NUMBER,
  boolean: BOOLEAN,
  bytes: BYTES,
  timestamptz: MOMENT,
};

const [QUOTE, BACKSLASH, COMMA, OPEN, CLOSE, PLUS, MINUS] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x2b, 0x2d];
const TRUE_LETTER = 0x74;
const MAX_EXPANSION = 6; // `\u001f` takes six bytes for one
const MAX_FRAMING_BYTES = 16; // brackets, a comma, quotes, and `:00` after a time zone
/**
 * Additional bytes of a buffer, for its last row. Usual rows are shorter as JSON than as received, so most
 * results need no second buffer.
 */
const SPARE_BYTES = 16 * 1024;

/**
 * Returns a JSON array of arrays. Each part consists of whole `DataRow` messages. Bytes that are not UTF-8 become
 * replacement characters. `only`: the indexes of the columns to write; all when unset.
 */
export function jsonOf(
  columns: readonly ResultColumn[],
  parts: readonly Buffer[],
  only?: ReadonlySet<number>,
): Buffer {
  const ways = columns.map(({ type }, index) =>
    only?.has(index) === false ? LEFT_OUT : (WAYS[type] ?? TEXT),
  );
  const count = ways.length;
  let out: Buffer = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, SPARE_BYTES));
  let at = 0;
  out[at++] = OPEN;
  for (const bytes of parts) {
    for (let row = 0; row < bytes.length; ) {
      const end = row + 1 + int32(bytes, row + 1);
      let value = row + MESSAGE_HEAD_BYTES + 2;
      out = withRoom(out, at, MAX_EXPANSION * (end - row) + MAX_FRAMING_BYTES * (count + 1));
      if (at > 1) out[at++] = COMMA;
      out[at++] = OPEN;
      for (let column = 0; column < count; column++) {
        const length = value + 4 <= end ? int32(bytes, value) : -1;
        value += 4;
        // A wrong length from the server must not reach beyond its row.
        const isNull = length < 0 || value + length > end;
        const way = ways[column]!;
        if (way !== LEFT_OUT) {
          if (out[at - 1] !== OPEN) out[at++] = COMMA;
          at = isNull ? writeWord(NULL, out, at) : writeValue(way, bytes, value, value + length, out, at);
        }
        if (!isNull) value += length;
      }
      out[at++] = CLOSE;
      row = end;
    }
  }
  out = withRoom(out, at, 1);
  out[at++] = CLOSE;
  const json = out.subarray(0, at);
  return isUtf8(json) ? json : Buffer.from(json.toString('utf8'));
}

/**
 * Writes the value in `bytes` from `start` to `end` at `place`, which must have room. Returns the end of the written
 * text.
 */
function writeValue(
  way: number,
  bytes: Buffer,
  start: number,
  end: number,
  out: Buffer,
  place: number,
): number {
  if (way === NUMBER) {
    const after = writeNumber(bytes, start, end, out, place);
    if (after > 0) return after;
  }
  if (way === BOOLEAN) return writeWord(bytes[start] === TRUE_LETTER ? TRUE : FALSE, out, place);
  let at = place;
  out[at++] = QUOTE;
  if (way === BYTES) {
    const hex = bytes.toString('latin1', start + 2, end);
    at += out.write(Buffer.from(hex, 'hex').toString('base64'), at, 'latin1');
  } else {
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      if (PLAIN[byte] === 1) out[at++] = byte;
      else at = writeEscaped(byte, out, at);
    }
    // PostgreSQL writes zones of whole hours without minutes, which not every reader accepts.
    const hasHoursOnly = way === MOMENT && (bytes[end - 3] === PLUS || bytes[end - 3] === MINUS);
    if (hasHoursOnly) at = writeWord(NO_MINUTES, out, at);
  }
  out[at++] = QUOTE;
  return at;
}

/** The bytes that stand in a JSON string as they are. */
const PLAIN = new Uint8Array(256).fill(1, 0x20);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

function writeEscaped(byte: number, out: Buffer, at: number): number {
  if (byte < 0x20) return at + out.write(`\\u${byte.toString(16).padStart(4, '0')}`, at, 'latin1');
  out[at] = BACKSLASH;
  out[at + 1] = byte;
  return at + 2;
}

const [NULL, TRUE, FALSE, NO_MINUTES] = ['null', 'true', 'false', ':00'].map((word) => Buffer.from(word)) as [
  Buffer,
  Buffer,
  Buffer,
  Buffer,
];

/** Writes a few letters one by one, which is faster than a call of `Buffer`. */
function writeWord(word: Buffer, out: Buffer, place: number): number {
  for (let i = 0; i < word.length; i++) out[place + i] = word[i]!;
  return place + word.length;
}

const DIGITS_AND_MINUS = Buffer.from('0123456789-');
const [FIRST_OF_NUMBER, IN_NUMBER] = [1, 2];
const NUMERIC = new Uint8Array(256);
for (const byte of [...DIGITS_AND_MINUS, ...Buffer.from('.eE+')]) NUMERIC[byte] = IN_NUMBER;
for (const byte of DIGITS_AND_MINUS) NUMERIC[byte] = FIRST_OF_NUMBER;

/**
 * Writes a number that JSON can represent. Returns the end of the written text, or 0 for NaN, the infinities and any
 * other text.
 */
function writeNumber(bytes: Buffer, start: number, end: number, out: Buffer, place: number): number {
  if (end <= start || NUMERIC[bytes[start]!] !== FIRST_OF_NUMBER) return 0;
  let at = place;
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!;
    if (NUMERIC[byte] === 0) return 0;
    out[at++] = byte;
  }
  return at;
}

function withRoom(out: Buffer, at: number, more: number): Buffer {
  if (at + more <= out.length) return out;
  const grown = Buffer.allocUnsafe(Math.max(out.length * 2, at + more));
  out.copy(grown, 0, 0, at);
  return grown;
}

/** Reads like `readInt32BE`, but without its check of the arguments at each call. */
export function int32(bytes: Buffer, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
