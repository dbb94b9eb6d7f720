/** Encodes long text in pieces: encoding megabytes at once would stop the server for too long. */

const PIECE_CHARS = 128 * 1024;

/** Returns the text as UTF-8, in steps of up to a millisecond. */
export function* encodeUtf8(text: string): Generator<undefined, Buffer> {
  const pieces: Buffer[] = [];
  for (let from = 0; from < text.length; ) {
    let end = from + PIECE_CHARS;
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++;
    pieces.push(Buffer.from(text.slice(from, end)));
    from = end;
    yield;
  }
  return Buffer.concat(pieces);
}

/** Returns whether a UTF-16 unit is the first half of a pair. */
export function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
