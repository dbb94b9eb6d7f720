import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { isShortJson, jsonPieces } from '#src/base/json/json-write.ts';
import { joined } from '#src/base/text/joined-bytes.ts';
import { timestamp } from '#src/base/time/clock.ts';

/**
 * Frames are sent together in pieces of at most this size, so that no piece occupies a socket for
 * long.
 */
export const PIECE_BYTES = 64 * 1024;

/** A large frame; each piece is encoded when it is requested. */
export type LargeFrame = Iterable<Uint8Array>;

/** A part of a subscriber's bytes: some whole frames, or a piece of a large frame. */
export interface FramePiece {
  readonly bytes: Uint8Array;
  /** Whether a frame ends with this piece. If not, the next piece continues the same frame. */
  readonly endsFrame: boolean;
}

/** An event that can be sent. It has at least one member. */
export interface Frameable {
  readonly type: string;
  /** The time of the event. When it is absent, the time of encoding is added. */
  readonly time?: string;
}

/** The last piece of every large frame. Pieces are compared with this object by identity, so it must not be copied. */
const FRAME_END = Buffer.from('\n\n');

/**
 * Returns one server-sent event. It has no `event:` field, so that a plain `EventSource.onmessage` receives all events. Its time
 * is the time of the event, or else of the call.
 */
export function encodeEventFrame(id: string, event: Frameable): string {
  const timed = event.time === undefined ? { ...event, time: timestamp() } : event;
  return `id: ${id}\ndata: ${JSON.stringify(timed)}\n\n`;
}

/**
 * Encodes like `encodeEventFrame`, but returns a large frame in pieces, which are made on demand. The event must not change
 * meanwhile.
 */
export function frameOf(id: string, event: Frameable): string | LargeFrame {
  if (isShortJson(event, MAX_SIZE_AT_ONCE)) return encodeEventFrame(id, event);
  return largeFrame(id, { ...event, time: event.time ?? timestamp() });
}

function* largeFrame(id: string, event: Frameable): Generator<Uint8Array> {
  yield Buffer.from(`id: ${id}\ndata: `);
  yield* jsonPieces(event);
  yield FRAME_END;
}

/**
 * Returns a server-sent event without an id, whose data are the JSON of a value. A large event is returned in pieces. The value
 * must not change meanwhile.
 */
export function dataFrame(value: unknown): string | LargeFrame {
  return isShortJson(value, PIECE_BYTES) ? `data: ${JSON.stringify(value)}\n\n` : largeDataFrame(value);
}

function* largeDataFrame(value: unknown): Generator<Uint8Array> {
  yield Buffer.from('data: ');
  yield* jsonPieces(value);
  yield FRAME_END;
}

/** Returns a whole frame, in steps of up to a millisecond. */
export function* wholeFrame(frame: LargeFrame): Generator<undefined, Uint8Array> {
  const pieces: Uint8Array[] = [];
  for (const piece of frame) {
    pieces.push(piece);
    yield;
  }
  return yield* joined(pieces);
}

/** Returns frames that a subscriber has missed, each marked with `missed: true` as a last member of its event. `frames` are whole frames. */
export function* markMissed(frames: Uint8Array): Generator<string> {
  for (const frame of textOf(frames).split('\n\n')) {
    if (frame !== '') yield `${frame.slice(0, -1)},"missed":true}\n\n`;
  }
}

/** Joins frames to pieces of at most 64 KiB, on demand. The pieces of a large frame are passed on unchanged. */
export function* joinFrames(frames: Iterable<string | LargeFrame>): Generator<FramePiece, undefined> {
  let joined = '';
  for (const frame of frames) {
    if (joined !== '' && (typeof frame !== 'string' || joined.length + frame.length > PIECE_BYTES)) {
      yield { bytes: Buffer.from(joined), endsFrame: true };
      joined = '';
    }
    if (typeof frame === 'string') joined += frame;
    else for (const bytes of frame) yield { bytes, endsFrame: bytes === FRAME_END };
  }
  if (joined !== '') yield { bytes: Buffer.from(joined), endsFrame: true };
}

/**
 * Returns the rest of a piece from the frame with this id on; undefined when the piece does not
 * contain that frame.
 */
export function fromFrame(piece: Uint8Array, id: string): Uint8Array | undefined {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const start = Buffer.from(`id: ${id}\n`);
  if (bytes.subarray(0, start.length).equals(start)) return bytes;
  // JSON contains no line feed, so a line feed is always followed by a field of a frame.
  const at = bytes.indexOf(`\n${start}`);
  return at < 0 ? undefined : bytes.subarray(at + 1);
}

/** Returns the id of the last of these frames. */
export function lastEventIdOf(frames: Buffer): string {
  const before = frames.lastIndexOf('\n\nid: ');
  const start = (before < 0 ? 0 : before + '\n\n'.length) + 'id: '.length;
  return frames.toString('latin1', start, frames.indexOf('\n', start));
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
