/** The layout of the bytes of frames. */

const HEAD_LENGTH_BYTES = 4;

/** The head of the frame after which an event stream continues as a feed. */
export interface FeedPosition {
  readonly feed: number;
  /** The index of the first chunk that the subscriber does not have. */
  readonly nextIndex: number;
}

/** Returns the parts of a frame: its head as JSON, and the rest. */
export function withHead(head: object, body: Uint8Array): Uint8Array[] {
  const text = Buffer.from(JSON.stringify(head));
  return [numberBytes(text.byteLength), text, body];
}

/** Returns the head of a frame that begins with JSON, and the rest of the frame. */
export function splitHead<Head>(bytes: Buffer): { readonly head: Head; readonly body: Buffer } {
  const end = HEAD_LENGTH_BYTES + bytes.readUInt32LE(0);
  return {
    head: JSON.parse(bytes.toString('utf8', HEAD_LENGTH_BYTES, end)) as Head,
    body: bytes.subarray(end),
  };
}

/** Returns a number of 32 bits as bytes. */
export function numberBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(value, 0);
  return bytes;
}
