import { MAX_SIZE_AT_ONCE } from '../async/slices.ts';

/** Returns the bytes one after the other, in steps of up to a millisecond. */
export function* joined(parts: readonly Uint8Array[]): Generator<undefined, Buffer> {
  const all = Buffer.allocUnsafe(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const part of parts)
    for (let from = 0; from < part.byteLength; from += MAX_SIZE_AT_ONCE) {
      const piece = part.subarray(from, from + MAX_SIZE_AT_ONCE);
      all.set(piece, at);
      at += piece.byteLength;
      yield;
    }
  return all;
}
