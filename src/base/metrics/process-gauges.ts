/** The resources that the process itself uses, and the delays of its event loop. */
import { readdirSync, readFileSync } from 'node:fs';
import { type IntervalHistogram, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { ownMemory } from './process-memory.ts';
import type { Registry } from './registry.ts';
import { WatchedDelay } from './watched-delay.ts';

export function addProcessGauges(registry: Registry): Disposable {
  const delay = new WatchedDelay();
  const maxDescriptors = readMaxDescriptors();
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
    {
      name: 'process_memory_usage_bytes',
      help: 'Resident memory of the server process, without kernels and without the mapped pages of the store.',
    },
    [],
    () => [[[], ownMemory().ownBytes]],
  );
  registry.observedGauge(
    {
      name: 'troupe_process_mapped_bytes',
      help: 'Resident pages of mapped files, most of them of the store: the system takes them back when it needs memory.',
    },
    [],
    () => [[[], ownMemory().mappedBytes]],
  );
  registry.observedGauge(
    { name: 'process_start_time_seconds', help: 'When the server process began, in seconds since 1970.' },
    [],
    () => [[[], performance.timeOrigin / 1000]],
  );
  registry.observedGauge(
    { name: 'process_open_fds', help: 'Open files and connections of the server process.' },
    [],
    () => [[[], openDescriptors() ?? maxDescriptors]],
  );
  registry.observedGauge(
    { name: 'process_max_fds', help: 'How many files and connections the server process may have open.' },
    [],
    () => [[[], maxDescriptors]],
  );
  registry.observedGauge(
    { name: 'v8js_memory_heap_used_bytes', help: 'JavaScript heap of the server, garbage included.' },
    [],
    () => [[[], getHeapStatistics().used_heap_size]],
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
  // Read last, because reading it begins the next interval.
  [
    'max',
    (delay) => {
      const { max } = delay;
      delay.reset();
      return max;
    },
  ],
];

/** Returns how many descriptors are open; undefined when none is left for reading the list. */
function openDescriptors(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}

function readMaxDescriptors(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
