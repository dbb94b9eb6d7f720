/**
 * The one command that a kernel may have in flight, and its interrupt. Invariants: at most one SIGINT a command, sent only
 * once the kernel has begun to run cells for it (marimo ignores an earlier one, and the cancel would be lost); a SIGINT that
 * may still be under way when its command has ended never hits the next one, which is held back until it has landed.
 */
import { controlFrame } from './kernel-commands.ts';
import type { BridgeDone, KernelMessage } from './messages.ts';

export interface CommandPort {
  readonly send: (frame: Buffer) => void;
  /** Sends one SIGINT; `landed` is to be called when it is delivered. */
  readonly interrupt: () => void;
}

/** Commands that say when their first cell begins. The others are short, or run code without a word before. */
const ANNOUNCING: ReadonlySet<string> = new Set([
  'execute-cells',
  'execute-stale-cells',
  'execute-scratchpad',
]);
/** For a host that does not confirm its signals. */
const LANDING_MS = 50;

export class CommandSlot {
  readonly #port: CommandPort;
  #seq = 0;
  #inFlight: number | null = null;
  #begun = false;
  #interrupt: 'none' | 'wanted' | 'sent' = 'none';
  #landing: NodeJS.Timeout | null = null;
  #held: Buffer | null = null;

  constructor(port: CommandPort) {
    this.#port = port;
  }

  get inFlight(): number | null {
    return this.#inFlight;
  }

  /** Sends the command and answers its seq. Throws while another one is in flight. */
  give(type: string, fields: Readonly<Record<string, unknown>>): number {
    if (this.#inFlight !== null)
      throw new Error(`${type} was given while command ${this.#inFlight} is in flight`);
    const seq = ++this.#seq;
    const frame = controlFrame(seq, type, fields);
    this.#inFlight = seq;
    this.#begun = !ANNOUNCING.has(type);
    this.#interrupt = 'none';
    if (this.#landing === null) this.#port.send(frame);
    else this.#held = frame;
    return seq;
  }

  /** False when nothing is in flight. Asking again changes nothing. */
  interrupt(): boolean {
    if (this.#inFlight === null) return false;
    if (this.#interrupt === 'none') this.#interrupt = 'wanted';
    this.#interruptIfBegun();
    return true;
  }

  /** Watches what the kernel says for the beginning of the command in flight. */
  notice(message: KernelMessage): void {
    if (this.#begun || this.#inFlight === null) return;
    this.#begun =
      (message.op === 'execution' && message.phase === 'running') ||
      (message.op === 'cell-op' && message.status === 'running');
    this.#interruptIfBegun();
  }

  /** Whether this is the end of the command in flight, which it then is. */
  settle(done: BridgeDone): boolean {
    if (done.seq === null || done.seq !== this.#inFlight) return false;
    this.#inFlight = null;
    if (done.interrupted) this.landed();
    return true;
  }

  /** The last SIGINT has reached the kernel, or has had the time to. */
  landed(): void {
    if (this.#landing !== null) clearTimeout(this.#landing);
    this.#landing = null;
    const held = this.#held;
    this.#held = null;
    if (held === null) return;
    this.#port.send(held);
    this.#interruptIfBegun();
  }

  /** Ends its timer; nothing is sent any more. */
  dispose(): void {
    if (this.#landing !== null) clearTimeout(this.#landing);
    this.#held = null;
  }

  #interruptIfBegun(): void {
    if (this.#interrupt !== 'wanted' || !this.#begun || this.#held !== null) return;
    this.#interrupt = 'sent';
    this.#landing = setTimeout(() => this.landed(), LANDING_MS);
    this.#port.interrupt();
  }
}
