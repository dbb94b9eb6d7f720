/**
 * The one command that a kernel may have in flight, and its interrupt. The kernel is asked to interrupt at most once for
 * each command, and is given the command's seq: `python/kernel/interrupts.py` makes sure that it reaches this command and no other,
 * whenever it arrives.
 */

import type { FrameSender } from '../frame-sender.ts';
import { controlFrame, interruptFrame } from './kernel-commands.ts';
import type { BridgeDone } from './messages.ts';

export interface CommandPort {
  readonly sender: Pick<FrameSender, 'send'>;
  /** Sends SIGINT to the kernel's process group. */
  readonly signal: () => void;
}

export class CommandSlot {
  readonly #port: CommandPort;
  #seq = 0;
  #inFlight: number | null = null;
  #isInterrupted = false;

  constructor(port: CommandPort) {
    this.#port = port;
  }

  get inFlight(): number | null {
    return this.#inFlight;
  }

  /** Sends the command and returns its seq. Throws while another one is in flight. */
  give(type: string, fields: Readonly<Record<string, unknown>>): number {
    if (this.#inFlight !== null)
      throw new Error(`${type} was given while command ${this.#inFlight} is in flight`);
    const seq = ++this.#seq;
    this.#inFlight = seq;
    this.#isInterrupted = false;
    this.#port.sender.send(controlFrame(seq, type, fields));
    return seq;
  }

  /** Interrupts the command in flight. Returns false when there is none. Asking again changes nothing. */
  interrupt(): boolean {
    if (this.#inFlight === null) return false;
    if (this.#isInterrupted) return true;
    this.#isInterrupted = true;
    // The kernel would take a signal that comes before its frame for a signal of the notebook's own, and wait for another one.
    this.#port.sender.send([interruptFrame(this.#inFlight)], () => this.#port.signal());
    return true;
  }

  /** Ends the command in flight if `done` is its end, and returns whether it was. */
  settle(done: BridgeDone): boolean {
    if (done.seq === null || done.seq !== this.#inFlight) return false;
    this.#inFlight = null;
    return true;
  }
}
