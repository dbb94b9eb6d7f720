/** The longest time that a timer is set for, because the machine's clock may change. */
const MAX_WAIT_MS = 60_000;

/**
 * Calls `act` at each of the added times. There is a timer only while one of these times is in the future, and the
 * timer does not keep the process alive. Errors of `act` go to `onFault`, because an error thrown in a timer would
 * end the process.
 */
export class ExpiryAlarm implements Disposable {
  readonly #act: () => void;
  readonly #nowMs: () => number;
  readonly #onFault: (error: unknown) => void;
  /** Milliseconds since 1970. */
  readonly #moments = new Set<number>();
  #nextMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(act: () => void, nowMs: () => number, onFault: (error: unknown) => void) {
    this.#act = act;
    this.#nowMs = nowMs;
    this.#onFault = onFault;
  }

  /** `ms` is in milliseconds since 1970; infinity is never. */
  add(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#moments.add(ms);
    if (ms < this.#nextMs) this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    this.#nextMs = Number.POSITIVE_INFINITY;
    for (const ms of this.#moments) this.#nextMs = Math.min(this.#nextMs, ms);
    if (this.#nextMs === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.min(Math.max(this.#nextMs - this.#nowMs(), 0), MAX_WAIT_MS);
    this.#timer = setTimeout(() => this.#ring(), waitMs).unref();
  }

  #ring(): void {
    const nowMs = this.#nowMs();
    const before = this.#moments.size;
    for (const ms of this.#moments) if (ms <= nowMs) this.#moments.delete(ms);
    this.#arm();
    if (this.#moments.size === before) return;
    try {
      this.#act();
    } catch (error) {
      this.#onFault(error);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#moments.clear();
  }
}
