/** Frames leave together in pieces of at most this size, so that none holds a socket for long. */
export const PIECE_BYTES = 64 * 1024;

/** An event that can be sent. It has at least one member. */
export interface Frameable {
  readonly type: string;
  /** When it happened. The time at which it is encoded is added when it is absent. */
  readonly time?: string;
}

let lastMs = 0;
let lastTime = '';

/**
 * Returns one server-sent event. It has no `event:` field, so that a plain `EventSource.onmessage` sees all of them. The
 * time is that of the call unless the event has one.
 */
export function encodeFrame(id: string, event: Frameable): string {
  const json = JSON.stringify(event);
  if (event.time !== undefined) return `id: ${id}\ndata: ${json}\n\n`;
  return `id: ${id}\ndata: ${withMember(json, `"time":"${now()}"`)}\n\n`;
}

/** Returns frames that a subscriber has missed, each marked with `missed: true`. `frames` are whole frames. */
export function* markMissed(frames: Uint8Array): Generator<string> {
  for (const frame of textOf(frames).split('\n\n')) {
    if (frame !== '') yield `${withMember(frame, '"missed":true')}\n\n`;
  }
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

/** Returns the rest of a piece from the frame with this id on; undefined when it has no such frame. */
export function fromFrame(piece: Uint8Array, id: string): Uint8Array | undefined {
  const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
  const start = Buffer.from(`id: ${id}\n`);
  if (bytes.subarray(0, start.length).equals(start)) return bytes;
  // JSON holds no line feed, so what follows one is always the field of a frame.
  const at = bytes.indexOf(`\n${start}`);
  return at < 0 ? undefined : bytes.subarray(at + 1);
}

/** Adds a member to the JSON object at the end of a text. The object has members already. */
function withMember(json: string, member: string): string {
  return `${json.slice(0, -1)},${member}}`;
}

/** Returns the present time. Its text is made once for each millisecond. */
function now(): string {
  const ms = Date.now();
  if (ms !== lastMs) {
    lastMs = ms;
    lastTime = new Date(ms).toISOString();
  }
  return lastTime;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
