/** Encodes and decodes long text in pieces: megabytes at once would stop the server for too long. */

import { cutText, placeToCut } from './cut-text.ts';
import { joined } from './joined-bytes.ts';

const PIECE_CHARS = 128 * 1024;

/** Returns the text as UTF-8, in steps of up to a millisecond. */
export function* encodeUtf8(text: string): Generator<undefined, Buffer> {
  const pieces: Buffer[] = [];
  for (let from = 0; from < text.length; ) {
    const end = placeToCut(text, from + PIECE_CHARS);
    pieces.push(Buffer.from(cutText(text, from, end)));
    from = end;
    yield;
  }
  return yield* joined(pieces);
}

/** Returns the text of UTF-8, in steps of up to a millisecond. */
export function* decodeUtf8(bytes: Uint8Array): Generator<undefined, string> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const pieces: string[] = [];
  for (let from = 0; from < bytes.byteLength; from += PIECE_CHARS) {
    pieces.push(decoder.decode(bytes.subarray(from, from + PIECE_CHARS), { stream: true }));
    yield;
  }
  pieces.push(decoder.decode());
  return pieces.join('');
}
