/**
 * What Ctrl-C means while a command is at work: the first one stops it in order, the second one leaves at once. Alive
 * until it is disposed of.
 */
import { CommandEnd, EXIT } from '../exit-code.ts';
import type { Input } from '../input.ts';

export class Interruption implements Disposable {
  /** Done at the first Ctrl-C in place of aborting `stop`, while there is something better to do. */
  instead: (() => void) | undefined;
  readonly #stop = new AbortController();
  readonly #leave = new AbortController();
  readonly #subscription: Disposable;
  #count = 0;

  constructor(input: Input) {
    this.#subscription = input.onInterrupt(() => this.#interrupt());
  }

  /** Aborts what can be given up. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Aborts everything, cleaning up as well. */
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
