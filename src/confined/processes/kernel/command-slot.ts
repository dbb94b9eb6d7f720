/**
 * The one command that a kernel may have in flight, and its interrupt. The kernel is asked at most
 * once to interrupt a command. The request has the command's seq, so that
 * `python/kernel/interrupts.py` applies the interrupt to this command only, whenever it arrives.
 */

import { invariant } from '#src/base/errors/invariant.ts';
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

  /** Sends the command and returns its seq. Throws while another command is in flight. */
  give(type: string, fields: Readonly<Record<string, unknown>>): number {
    invariant(this.#inFlight === null, 'A kernel has one command in flight.', type);
    const seq = ++this.#seq;
    this.#inFlight = seq;
    this.#isInterrupted = false;
    this.#port.sender.send(controlFrame(seq, type, fields));
    return seq;
  }

  /**
   * Interrupts the command in flight. Returns false without a command in flight. Further calls have no
   * effect.
   */
  interrupt(): boolean {
    if (this.#inFlight === null) return false;
    if (this.#isInterrupted) return true;
    this.#isInterrupted = true;
    // If the signal arrived before its frame, the kernel would treat it as a signal from notebook code and
    // wait for another signal.
    this.#port.sender.send([interruptFrame(this.#inFlight)], () => this.#port.signal());
    return true;
  }

  /** Ends the command in flight if `done` reports its end, and returns whether it did. */
  settle(done: BridgeDone): boolean {
    if (done.seq === null || done.seq !== this.#inFlight) return false;
    this.#inFlight = null;
    return true;
  }
}
