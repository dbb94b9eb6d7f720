/**
 * Converts rows of PostgreSQL into the JSON that kernels read, from bytes to bytes, without creating JavaScript values:
 * creating them would be most of the work of a large result.
 */
import { isUtf8 } from 'node:buffer';
import type { Column, ColumnType } from '../../rows.ts';
import { HEAD_BYTES } from './messages.ts';

const [TEXT, NUMBER, BOOLEAN, BYTES, MOMENT] = [0, 1, 2, 3, 4];
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
const maxJsonBytes = (valueBytes: number) => MAX_EXPANSION * valueBytes + MAX_FRAMING_BYTES;

/**
 * Returns a JSON array of arrays. Each part consists of whole `DataRow` messages. Bytes that are not UTF-8 become
 * replacement characters.
 */
export function jsonOf(columns: readonly Column[], parts: readonly Buffer[]): Buffer {
  const ways = columns.map(({ type }) => WAYS[type] ?? TEXT);
  let out: Buffer = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + part.length, 1024));
  let at = 0;
  out[at++] = OPEN;
  for (const bytes of parts) {
    for (let row = 0; row < bytes.length; ) {
      const end = row + 1 + int32(bytes, row + 1);
      let value = row + HEAD_BYTES + 2;
      for (let column = 0; column < ways.length; column++) {
        const length = value + 4 <= end ? int32(bytes, value) : -1;
        value += 4;
        // A wrong length from the server must not reach beyond its row.
        const isNull = length < 0 || value + length > end;
        out = withRoom(out, at, maxJsonBytes(isNull ? 0 : length));
        if (column > 0 || at > 1) out[at++] = COMMA;
        if (column === 0) out[at++] = OPEN;
        if (isNull) {
          at += out.write('null', at, 'latin1');
          continue;
        }
        at = writeValue(ways[column]!, bytes, value, value + length, out, at);
        value += length;
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
  let at = place;
  if (way === NUMBER && isNumber(bytes, start, end)) {
    for (let i = start; i < end; i++) out[at++] = bytes[i]!;
    return at;
  }
  if (way === BOOLEAN) return at + out.write(bytes[start] === TRUE_LETTER ? 'true' : 'false', at, 'latin1');
  out[at++] = QUOTE;
  if (way === BYTES) {
    const hex = bytes.toString('latin1', start + 2, end);
    at += out.write(Buffer.from(hex, 'hex').toString('base64'), at, 'latin1');
  } else {
    for (let i = start; i < end; i++) {
      const byte = bytes[i]!;
      if (byte === QUOTE || byte === BACKSLASH) out[at++] = BACKSLASH;
      if (byte >= 0x20) out[at++] = byte;
      else at += out.write(`\\u${byte.toString(16).padStart(4, '0')}`, at, 'latin1');
    }
    // PostgreSQL writes zones of whole hours without minutes, which not every reader accepts.
    const hasHoursOnly = way === MOMENT && (bytes[end - 3] === PLUS || bytes[end - 3] === MINUS);
    if (hasHoursOnly) at += out.write(':00', at, 'latin1');
  }
  out[at++] = QUOTE;
  return at;
}

const DIGITS_AND_MINUS = Buffer.from('0123456789-');
const NUMERIC = new Uint8Array(256);
for (const byte of [...DIGITS_AND_MINUS, ...Buffer.from('.eE+')]) NUMERIC[byte] = 1;

/** Returns whether JSON has the number: it has neither NaN nor the infinities. */
function isNumber(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (NUMERIC[bytes[i]!] === 0) return false;
  return end > start && DIGITS_AND_MINUS.includes(bytes[start]!);
}

function withRoom(out: Buffer, at: number, more: number): Buffer {
  if (at + more <= out.length) return out;
  const grown = Buffer.allocUnsafe(Math.max(out.length * 2, at + more));
  out.copy(grown, 0, 0, at);
  return grown;
}

/** Reads like `readInt32BE`, but without its check of the arguments at each call. */
function int32(bytes: Buffer, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}
