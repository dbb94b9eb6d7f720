import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

/** The delay of the event loop is sampled only while somebody reads at least this often. */
const WATCHED_FOR_MS = 5 * 60_000;
const NS_PER_S = 1e9;

/** The delay of the event loop, for one reader. The first read begins the sampling. */
export class WatchedDelay implements Disposable {
  #histogram: IntervalHistogram | undefined;
  #end: NodeJS.Timeout | undefined;

  /** Returns seconds; undefined while there is no sample. */
  read(of: (delay: IntervalHistogram) => number): number[] {
    if (this.#end === undefined) this.#end = setTimeout(() => this[Symbol.dispose](), WATCHED_FOR_MS).unref();
    else this.#end.refresh();
    if (this.#histogram === undefined) {
      this.#histogram = monitorEventLoopDelay({ resolution: 10 });
      this.#histogram.enable();
    }
    return this.#histogram.count === 0 ? [] : [of(this.#histogram) / NS_PER_S];
  }

  /** Begins the next interval. */
  restart(): void {
    this.#histogram?.reset();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#end);
    this.#end = undefined;
    this.#histogram?.disable();
    this.#histogram = undefined;
  }
}
