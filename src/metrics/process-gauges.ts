/** What the process itself costs, and how long others wait for its event loop. */
import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Registry } from './registry.ts';

/** The delay of the event loop is sampled only while somebody reads the metrics at least this often. */
const WATCHED_FOR_MS = 5 * 60_000;
const NS_PER_S = 1e9;

export function addProcessGauges(registry: Registry): Disposable {
  const delay = new WatchedDelay();
  registry.observedCounter(
    { name: 'process_cpu_time_seconds', help: 'Processor time of the server process, without kernels.' },
    ['cpu_mode'],
    () => {
      const { user, system } = process.cpuUsage();
      return [
        [['user'], user / 1e6],
        [['system'], system / 1e6],
      ];
    },
  );
  registry.observedGauge(
    { name: 'process_memory_usage_bytes', help: 'Resident memory of the server process, without kernels.' },
    [],
    () => [[[], process.memoryUsage.rss()]],
  );
  let last = performance.eventLoopUtilization();
  registry.observedGauge(
    {
      name: 'nodejs_eventloop_utilization',
      help: 'Share of the time since the last read in which the event loop was busy.',
    },
    [],
    () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return [[[], utilization]];
    },
  );
  for (const [name, read] of QUANTILES) {
    registry.observedGauge(
      {
        name: `nodejs_eventloop_delay_${name}_seconds`,
        help: 'Delay of the event loop since the last read; sampled while somebody reads.',
      },
      [],
      () => delay.read(read).map((value) => [[], value]),
    );
  }
  return delay;
}

const QUANTILES: readonly (readonly [name: string, read: (delay: IntervalHistogram) => number])[] = [
  ['p50', (delay) => delay.percentile(50)],
  ['p99', (delay) => delay.percentile(99)],
  // Read last: it begins the next interval.
  [
    'max',
    (delay) => {
      const { max } = delay;
      delay.reset();
      return max;
    },
  ],
];

class WatchedDelay implements Disposable {
  #histogram: IntervalHistogram | undefined;
  #end: NodeJS.Timeout | undefined;

  /** Returns seconds; nothing at the first read, which begins the sampling. */
  read(of: (delay: IntervalHistogram) => number): number[] {
    if (this.#end === undefined) this.#end = setTimeout(() => this[Symbol.dispose](), WATCHED_FOR_MS).unref();
    else this.#end.refresh();
    if (this.#histogram === undefined) {
      this.#histogram = monitorEventLoopDelay({ resolution: 10 });
      this.#histogram.enable();
    }
    return this.#histogram.count === 0 ? [] : [of(this.#histogram) / NS_PER_S];
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#end);
    this.#end = undefined;
    this.#histogram?.disable();
    this.#histogram = undefined;
  }
}
