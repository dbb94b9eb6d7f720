/**
 * The open calls of one kernel's code to the server: calls that the server works on, and answers that the kernel has not taken.
 * When open calls take too much memory, the kernel's socket is held. So a kernel that asks and does not read
 * has to wait, and costs the server no more memory.
 */
import type { FrameSender } from '../frame-sender.ts';

/** The bytes of questions and of answers that may wait. A single question may have 60 MiB. */
export const MAX_CALL_BYTES = 64 * 2 ** 20;
/**
 * How many calls the server works on at once. A kernel has at most 32 open results, and a thread of its code waits for one call at a
 * time, so notebook code does not come near.
 */
export const MAX_CALLS = 256;

type CallSender = Pick<FrameSender, 'queuedBytes' | 'sendCounted'>;

export class CallWindow {
  readonly #sender: CallSender;
  readonly #hold: (isHeld: boolean) => void;
  /** The sizes of the questions, by the numbers of their calls, which the kernel chooses and may repeat. */
  readonly #calls = new Map<number, number[]>();
  #count = 0;
  #questionBytes = 0;
  #isHeld = false;
  #isWidened = false;

  /** `hold` stops reading from the kernel, or continues. */
  constructor(sender: CallSender, hold: (isHeld: boolean) => void) {
    this.#sender = sender;
    this.#hold = hold;
  }

  /** The bytes of questions that are not answered. */
  get questionBytes(): number {
    return this.#questionBytes;
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  /** Begins a call whose question has this size. */
  begin(id: number, bytes: number): void {
    const sizes = this.#calls.get(id);
    if (sizes === undefined) this.#calls.set(id, [bytes]);
    else sizes.push(bytes);
    this.#count++;
    this.#questionBytes += bytes;
    this.settle();
  }

  /** Sends an answer, which ends its call. */
  answer(id: number, frame: readonly Uint8Array[]): void {
    const sizes = this.#calls.get(id);
    const bytes = sizes?.shift();
    if (bytes !== undefined) {
      this.#count--;
      this.#questionBytes -= bytes;
      if (sizes?.length === 0) this.#calls.delete(id);
    }
    this.#sender.sendCounted(frame);
    this.settle();
  }

  /**
   * Doubles the limits, or sets the usual limits again. An interrupted command needs room, because its end
   * comes after the questions that were sent before it.
   */
  widen(isWidened: boolean): void {
    this.#isWidened = isWidened;
    this.settle();
  }

  /** Holds the kernel's socket or lets it go on, after the kernel has taken bytes, too. */
  settle(): void {
    const factor = this.#isWidened ? 2 : 1;
    const isFull =
      this.#count >= MAX_CALLS * factor ||
      this.#questionBytes + this.#sender.queuedBytes > MAX_CALL_BYTES * factor;
    if (isFull === this.#isHeld) return;
    this.#isHeld = isFull;
    this.#hold(isFull);
  }
}
