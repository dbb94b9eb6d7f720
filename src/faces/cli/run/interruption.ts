/**
 * Ctrl-C during a command: the first one stops the command in an orderly way, the second one ends it at once. Active
 * until it is disposed of.
 */
import { CommandEnd, EXIT } from '../exit-code.ts';
import type { Input } from '../input.ts';

/** The interruptions of one command. */
export class Interruption implements Disposable {
  /** While set, called at the first Ctrl-C instead of aborting `stop`. */
  instead: (() => void) | undefined;
  readonly #stop = new AbortController();
  readonly #leave = new AbortController();
  readonly #subscription: Disposable;
  #detaching: Disposable | undefined;
  #count = 0;

  constructor(input: Input) {
    this.#subscription = input.onInterrupt(() => this.#interrupt());
  }

  /** From now on Ctrl-\ calls `detach` and then ends the command at once, without clean-up. */
  detachOnQuit(input: Input, detach: () => void): void {
    this.#detaching = input.onQuit?.(() => {
      detach();
      this.#leaveNow();
    });
  }

  /** Aborts at the first Ctrl-C: for work that can be given up. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts at the second Ctrl-C: for all work, including clean-up. */
  get leave(): AbortSignal {
    return this.#leave.signal;
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
    this.#detaching?.[Symbol.dispose]();
  }

  #interrupt(): void {
    this.#count++;
    if (this.#count === 1 && this.instead !== undefined) {
      this.instead();
      return;
    }
    if (this.#count > 1) this.#leaveNow();
    else this.#stop.abort(new CommandEnd(EXIT.cancelled));
  }

  #leaveNow(): void {
    this.#stop.abort(new CommandEnd(EXIT.cancelled));
    this.#leave.abort(new CommandEnd(EXIT.cancelled));
  }
}
