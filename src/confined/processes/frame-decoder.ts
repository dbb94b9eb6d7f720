import { inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { isShortJson, writeJson } from '#src/base/json/json-write.ts';

/** One frame of a kernel's socket. `body` is valid until the next `push`: decode it at once or copy it. */
export interface Frame {
  readonly channel: number;
  readonly body: Buffer;
}

/** Thrown when the other side broke the protocol. Nothing more is read from the connection then. */
export class FrameError extends Error {
  override readonly name = 'FrameError';
}

/** The bytes of a frame before its body: the length of the rest, and the channel. */
export const FRAME_HEADER_BYTES = 5;
const FIRST_BUFFER_BYTES = 64 * 1024;

/** Returns the frame that carries `message`: u32le length of the rest, u8 channel, JSON. */
export function encodeFrame(channel: number, message: unknown): Buffer {
  return Buffer.concat(framedParts(channel, [Buffer.from(JSON.stringify(message))]));
}

/**
 * Encodes like `encodeFrame`, in parts. Returns a promise when the message is long, because it is then encoded in
 * slices.
 */
export function encodeLongFrame(
  channel: number,
  message: unknown,
): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
  if (isShortJson(message, MAX_SIZE_AT_ONCE)) return [encodeFrame(channel, message)];
  return inSlices(writeJson(message)).then((parts) => framedParts(channel, parts));
}

/** Returns the parts of a frame whose body consists of these parts. */
export function framedParts(channel: number, parts: readonly Uint8Array[]): Uint8Array[] {
  let length = 1;
  for (const part of parts) length += part.length;
  const head = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
  head.writeUInt32LE(length, 0);
  head[4] = channel;
  return [head, ...parts];
}

/**
 * Cuts a byte stream into frames. A frame that arrives in one piece is not copied. A frame that
 * arrives in several pieces is collected in a buffer that grows with the received bytes, not with
 * the length in the header. So a forged length costs nothing, and many small pieces cost no more
 * than a few large ones.
 */
export class FrameDecoder {
  readonly #limitBytes: number;
  #gathered = Buffer.alloc(0);
  #gatheredBytes = 0;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  /**
   * Yields the frames that `chunk` completes, in order. Throws FrameError after the last good one;
   * the decoder must then not be used again.
   */
  *push(chunk: Buffer): Generator<Frame, void> {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#gatheredBytes === 0) {
        const frameBytes = this.#frameBytes(rest);
        if (frameBytes !== null && rest.length >= frameBytes) {
          yield frameOf(rest, frameBytes);
          rest = rest.subarray(frameBytes);
        } else {
          this.#gather(rest, frameBytes ?? rest.length);
          return;
        }
      } else {
        rest = this.#take(rest, FRAME_HEADER_BYTES);
        const frameBytes = this.#frameBytes(this.#gathered.subarray(0, this.#gatheredBytes));
        if (frameBytes === null) return;
        rest = this.#take(rest, frameBytes);
        if (this.#gatheredBytes < frameBytes) return;
        const frame = frameOf(this.#gathered, frameBytes);
        this.#gatheredBytes = 0;
        this.#gathered = Buffer.alloc(0);
        yield frame;
      }
    }
  }

  /**
   * Returns the size of the frame that starts here, with its header; null while the header is
   * incomplete.
   */
  #frameBytes(bytes: Buffer): number | null {
    if (bytes.length < FRAME_HEADER_BYTES) return null;
    const length = bytes.readUInt32LE(0);
    if (length < 1) throw new FrameError('an empty frame');
    if (length > this.#limitBytes) throw new FrameError(`a frame of ${length} bytes`);
    return 4 + length;
  }

  /** Takes bytes from `chunk` until the buffer has `wantedBytes`. Returns the rest of the chunk. */
  #take(chunk: Buffer, wantedBytes: number): Buffer {
    const missing = wantedBytes - this.#gatheredBytes;
    if (missing <= 0) return chunk;
    this.#gather(chunk.subarray(0, missing), wantedBytes);
    return chunk.subarray(missing);
  }

  #gather(piece: Buffer, wantedBytes: number): void {
    const neededBytes = this.#gatheredBytes + piece.length;
    if (neededBytes > this.#gathered.length) {
      const grownBytes = Math.max(neededBytes, FIRST_BUFFER_BYTES, this.#gathered.length * 2);
      const grown = Buffer.allocUnsafe(Math.max(neededBytes, Math.min(grownBytes, wantedBytes)));
      this.#gathered.copy(grown, 0, 0, this.#gatheredBytes);
      this.#gathered = grown;
    }
    piece.copy(this.#gathered, this.#gatheredBytes);
    this.#gatheredBytes = neededBytes;
  }
}

function frameOf(bytes: Buffer, frameBytes: number): Frame {
  return { channel: bytes.readUInt8(4), body: bytes.subarray(FRAME_HEADER_BYTES, frameBytes) };
}
