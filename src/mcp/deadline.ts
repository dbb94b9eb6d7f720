/** A signal that aborts with another one, or when its time is over. It must be disposed of. */
export class Deadline implements Disposable {
  readonly #abort = new AbortController();
  readonly #parent: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #endsAtMs: number;
  readonly #leave = () => this.#abort.abort(this.#parent.reason);
  isOver = false;

  constructor(parent: AbortSignal, seconds: number) {
    this.#parent = parent;
    this.#endsAtMs = performance.now() + seconds * 1000;
    this.#timer = setTimeout(() => {
      this.isOver = true;
      this.#abort.abort(new Error('The time of the call is over.'));
    }, seconds * 1000);
    if (parent.aborted) this.#leave();
    else parent.addEventListener('abort', this.#leave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Returns how many seconds are left, at least 0. */
  get leftS(): number {
    return Math.max(0, (this.#endsAtMs - performance.now()) / 1000);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#parent.removeEventListener('abort', this.#leave);
  }
}
