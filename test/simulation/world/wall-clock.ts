/** The clock of the machine, which somebody may set forward and back while time itself goes on. */

/** 15 January 2027, the beginning of every simulation. */
export const EPOCH_MS = 1_800_000_000_000;

/** From `fromMs` on, the clock is `aheadMs` ahead of the time since the beginning. */
interface Setting {
  readonly fromMs: number;
  readonly aheadMs: number;
}

export class WallClock {
  readonly #time: { readonly nowMs: number };
  readonly #settings: Setting[] = [{ fromMs: 0, aheadMs: EPOCH_MS }];

  constructor(time: { readonly nowMs: number }) {
    this.#time = time;
  }

  /** What the clock shows, in milliseconds since 1970. */
  get nowMs(): number {
    return Math.floor(this.#time.nowMs + this.#settings.at(-1)!.aheadMs);
  }

  /** How far the clock is ahead of a clock that nobody has set. */
  get aheadMs(): number {
    return this.#settings.at(-1)!.aheadMs - EPOCH_MS;
  }

  /** Whether it was ever set back. */
  get wasSetBack(): boolean {
    return this.#settings.some(({ aheadMs }, at) => aheadMs < (this.#settings[at - 1]?.aheadMs ?? 0));
  }

  /** Returns whether it was set between two times since the beginning. */
  wasSetBetween(fromMs: number, toMs: number): boolean {
    return this.#settings.some((setting) => setting.fromMs > fromMs && setting.fromMs <= toMs);
  }

  /** Sets the clock forward, or back if `ms` is negative. */
  set(ms: number): void {
    this.#settings.push({ fromMs: this.#time.nowMs, aheadMs: this.#settings.at(-1)!.aheadMs + ms });
  }

  /** Returns the latest time that the clock has shown between two times since the beginning. */
  latestBetween(fromMs: number, toMs: number): number {
    return Math.max(...this.#shown(fromMs, toMs).map(([, end]) => end));
  }

  /** Returns the earliest time that the clock has shown between two times since the beginning. */
  earliestBetween(fromMs: number, toMs: number): number {
    return Math.min(...this.#shown(fromMs, toMs).map(([begin]) => begin));
  }

  /** Returns what the clock has shown between two times: the beginning and the end of each part without a setting. */
  #shown(fromMs: number, toMs: number): (readonly [number, number])[] {
    return this.#settings.flatMap(({ fromMs: setMs, aheadMs }, at) => {
      const begin = Math.max(fromMs, setMs);
      const end = Math.min(toMs, this.#settings[at + 1]?.fromMs ?? Number.POSITIVE_INFINITY);
      return begin > end ? [] : [[Math.floor(begin + aheadMs), Math.floor(end + aheadMs)] as const];
    });
  }
}
