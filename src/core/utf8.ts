/** Encodes long text in pieces: encoding megabytes at once would stop the server for too long. */

import { cutText, placeToCut } from './cut-text.ts';

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
  return Buffer.concat(pieces);
}
