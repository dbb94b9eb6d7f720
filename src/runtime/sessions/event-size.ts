/** Fits texts and values into the size of an event. No frame of a stream has more than 1 MiB. */

import { isShortJson } from '#src/base/json/json-write.ts';
import { cutText, endOfText } from '#src/base/text/cut-text.ts';

/** A byte of a text has up to six bytes in JSON: `\u001b`. */
const MAX_ESCAPED_BYTES = 6;
/** The most characters of one piece of text: 768 KiB as JSON. */
export const MAX_PIECE_CHARS = 128 * 1024;
/**
 * The characters that `isShortJson` charges for each value. The JSON of a value has at least one character.
 */
const CHARGED_CHARS = 8;

/**
 * Returns a text in pieces, for one event each. A piece ends at the end of a line where possible.
 */
export function piecesOfText(text: string): string[] {
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > MAX_PIECE_CHARS) {
    const end = from + MAX_PIECE_CHARS;
    const lineEnd = text.lastIndexOf('\n', end - 1) + 1;
    const piece = cutText(text, from, lineEnd > from + MAX_PIECE_CHARS / 2 ? lineEnd : end);
    pieces.push(piece);
    from += piece.length;
  }
  return [...pieces, cutText(text, from)];
}

/** Returns the beginning of a text, with at most this many bytes as JSON. */
export function beginning(text: string, maxBytes: number): string {
  let length = Math.min(text.length, maxBytes);
  for (;;) {
    const part = cutText(text, 0, length);
    const size = bytesOfJson(part);
    if (size <= maxBytes) return part;
    length = Math.max(0, Math.floor((length * maxBytes) / size) - 1);
  }
}

/** Returns the end of a text, with at most this many bytes as JSON. */
export function end(text: string, maxBytes: number): string {
  let length = Math.min(text.length, maxBytes);
  for (;;) {
    const part = endOfText(text, length);
    const size = bytesOfJson(part);
    if (size <= maxBytes) return part;
    length = Math.max(0, Math.floor((length * maxBytes) / size) - 1);
  }
}

/**
 * Returns whether the JSON of a value has at most this many bytes. Small values need not be encoded
 * for that.
 */
export function fits(value: unknown, maxBytes: number): boolean {
  if (isShortJson(value, maxBytes / MAX_ESCAPED_BYTES)) return true;
  return isShortJson(value, CHARGED_CHARS * maxBytes) && bytesOfJson(value) <= maxBytes;
}

export function bytesOfJson(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
