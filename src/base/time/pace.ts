import { unawaited } from '../async/unawaited.ts';

/** Calls a function soon after it is requested, but at most once in each gap. */
export class Pace implements Disposable {
  readonly #act: () => void | Promise<void>;
  readonly #gapMs: number;
  #actedAtMs = Number.NEGATIVE_INFINITY;
  #immediate: NodeJS.Immediate | undefined;
  #timeout: NodeJS.Timeout | undefined;
  #isAsked = false;
  #isActing = false;
  #isOver = false;

  /** `act` is called once in each gap at most, and not again before its promise resolves. It must not throw. */
  constructor(gapMs: number, act: () => void | Promise<void>) {
    this.#gapMs = gapMs;
    this.#act = act;
  }

  /** Acts after this turn of the event loop, or when the gap since the last time is over. */
  ask(): void {
    if (this.#isAsked) return;
    this.#isAsked = true;
    if (!this.#isActing) this.#wait(this.#actedAtMs + this.#gapMs - performance.now());
  }

  /** Acts at once, without waiting for the gap, if an action was requested. */
  hurry(): void {
    if (!this.#isAsked || this.#isOver) return;
    this.#actedAtMs = Number.NEGATIVE_INFINITY;
    if (this.#isActing) return;
    this.#stopWaiting();
    unawaited(this.#run(), 'pace: a paced action');
  }

  #wait(ms: number): void {
    // Further requests in this turn belong to the same call.
    if (ms <= 0) this.#immediate = setImmediate(() => unawaited(this.#run(), 'pace: a paced action'));
    else this.#timeout = setTimeout(() => unawaited(this.#run(), 'pace: a paced action'), ms).unref();
  }

  async #run(): Promise<void> {
    this.#isAsked = false;
    this.#isActing = true;
    this.#actedAtMs = performance.now();
    await this.#act();
    this.#isActing = false;
    if (this.#isAsked && !this.#isOver) this.#wait(this.#actedAtMs + this.#gapMs - performance.now());
  }

  #stopWaiting(): void {
    clearImmediate(this.#immediate);
    clearTimeout(this.#timeout);
  }

  /** Ends the calls. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#isAsked = true;
    this.#stopWaiting();
  }
}
