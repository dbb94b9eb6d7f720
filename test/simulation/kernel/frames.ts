/** The kernel's side of the frames that it exchanges with the server. */
import { encodeFrame, FrameDecoder } from '#src/confined/processes/frame-decoder.ts';

/** The channels to a kernel, as `frames.py` has them. */
export const CONTROL = 1;
export const INTERRUPT = 4;
export const LAUNCH = 6;
const FROM_KERNEL = 0;
const LIMIT_BYTES = 64 * 2 ** 20;

export function frameOf(message: unknown): Buffer {
  return encodeFrame(FROM_KERNEL, message);
}

/** Returns the frame with which a child proves that it is the expected one. */
export function greetingOf(token: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(Buffer.byteLength(token) + 1, 0);
  return Buffer.concat([head, Buffer.from(token)]);
}

/** Cuts what the server sends into frames. */
export class FrameReader {
  readonly #decoder = new FrameDecoder(LIMIT_BYTES);

  *read(bytes: Buffer): Generator<{ readonly channel: number; readonly body: Buffer }> {
    yield* this.#decoder.push(bytes);
  }
}
