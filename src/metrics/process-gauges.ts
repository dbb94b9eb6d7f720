/** What the process itself costs, and how long others wait for its event loop. */
import { type IntervalHistogram, performance } from 'node:perf_hooks';
import type { Registry } from './registry.ts';
import { WatchedDelay } from './watched-delay.ts';

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
  registry.observedGauge(
    { name: 'v8js_memory_heap_used_bytes', help: 'JavaScript heap of the server, garbage included.' },
    [],
    () => [[[], process.memoryUsage().heapUsed]],
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
