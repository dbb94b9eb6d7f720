import { FRAME_HEADER_BYTES } from '../../processes/frame-decoder.ts';
import { INTERRUPT } from '../../processes/kernel/kernel-commands.ts';

/** Finds the interrupts among the frames that go to a kernel, and keeps none of their bytes. */
export class InterruptWatch {
  readonly #head = Buffer.alloc(FRAME_HEADER_BYTES);
  /** How many bytes of the next frame's head have come. */
  #headBytes = 0;
  /** How many bytes of the body are still to come. */
  #bodyBytes = 0;

  /**
   * Returns the number of interrupts that end in these bytes. The bytes follow the bytes of the last call.
   */
  push(bytes: Buffer): number {
    let found = 0;
    for (let at = 0; at < bytes.length; ) {
      if (this.#headBytes < FRAME_HEADER_BYTES) {
        this.#head[this.#headBytes++] = bytes[at++]!;
        if (this.#headBytes === FRAME_HEADER_BYTES) this.#bodyBytes = this.#head.readUInt32LE() - 1;
      } else {
        const step = Math.min(this.#bodyBytes, bytes.length - at);
        at += step;
        this.#bodyBytes -= step;
      }
      if (this.#headBytes < FRAME_HEADER_BYTES || this.#bodyBytes > 0) continue;
      this.#headBytes = 0;
      if (this.#head[FRAME_HEADER_BYTES - 1] === INTERRUPT) found++;
    }
    return found;
  }
}
