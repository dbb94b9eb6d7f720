/**
 * Ctrl-C during a command: the first one stops the command in an orderly way, the second one ends it at once. Active
 * until it is disposed of.
 */
import { CommandEnd, EXIT } from '../exit-code.ts';
import type { Input } from '../input.ts';

/** The interruptions of one command. */
export class Interruption implements Disposable {
  /** Called at the first Ctrl-C instead of aborting `stop`, while it is set. */
  instead: (() => void) | undefined;
  readonly #stop = new AbortController();
  readonly #leave = new AbortController();
  readonly #subscription: Disposable;
  #count = 0;

  constructor(input: Input) {
    this.#subscription = input.onInterrupt(() => this.#interrupt());
  }

  /** Aborts work that can be given up. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts everything, including clean-up. */
  get leave(): AbortSignal {
    return this.#leave.signal;
  }

  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]();
  }

  #interrupt(): void {
    this.#count++;
    if (this.#count === 1 && this.instead !== undefined) {
      this.instead();
      return;
    }
    this.#stop.abort(new CommandEnd(EXIT.cancelled));
    if (this.#count > 1) this.#leave.abort(new CommandEnd(EXIT.cancelled));
  }
}
