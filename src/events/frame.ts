import type { Envelope } from '#src/wire/events.ts';

/** Frames leave together in pieces of at most this size, so that none holds a socket for long. */
export const PIECE_BYTES = 64 * 1024;

/** One server-sent event. It has no `event:` field, so that a plain `EventSource.onmessage` sees all of them. */
export function encodeFrame(id: string, envelope: Envelope): string {
  return `id: ${id}\ndata: ${JSON.stringify(envelope)}\n\n`;
}

/** Joins whole frames to pieces of at most 64 KiB as they are asked for; a larger frame is a piece of its own. */
export function* joinFrames(frames: Iterable<string>): Generator<Uint8Array, undefined> {
  let joined = '';
  for (const frame of frames) {
    if (joined !== '' && joined.length + frame.length > PIECE_BYTES) {
      yield Buffer.from(joined);
      joined = '';
    }
    joined += frame;
  }
  if (joined !== '') yield Buffer.from(joined);
}

/** The rest of a piece from the frame with this id on; undefined when it has no such frame. */
export function fromFrame(piece: Uint8Array, id: string): Uint8Array | undefined {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const start = Buffer.from(`id: ${id}\n`);
  if (bytes.subarray(0, start.length).equals(start)) return bytes;
  // JSON holds no line feed, so what follows one is always the field of a frame.
  const at = bytes.indexOf(`\n${start}`);
  return at < 0 ? undefined : bytes.subarray(at + 1);
}
