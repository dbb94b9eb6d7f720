/** Comparisons of a session's printed text: to many subscribers, and much at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Readers, TIME_MARK } from '../load/readers.ts';
import { residentBytes } from '../processes.ts';
import type { Aside, Comparison, Trial } from './comparison.ts';

const MIB = 1024 * 1024;
const KIB = 1024;
const PRINTS = 10;
const PRINT_EVERY_MS = 200;
const TIMES =
  `import time as _time\nfor _ in range(${PRINTS}):\n` +
  `    print(f"${TIME_MARK}{_time.time() * 1000:017.3f}", flush=True)\n    _time.sleep(${PRINT_EVERY_MS / 1000})`;
const LINE_BYTES = 1024;
const LINES = (10 * MIB) / LINE_BYTES;
const PRINTED = LINES * (LINE_BYTES - 1);
const PRINT = `for i in range(${LINES}):\n    print("x" * ${LINE_BYTES - 1})`;

/** How late a printed line reaches many subscribers. */
export const fanOut: Comparison = {
  name: 'fan-out',
  title: 'A line is printed five times per second: its age at each of 1,000 subscribers, 99th percentile',
  unit: 'ms',
  statistic: 'p99',
  perRound: 1,
  targets: {},
  absent: {
    jupyter: 'each subscriber takes five ZeroMQ sockets, and a process may have 1,023',
    'jupyter-tuned': 'as without tuning',
  },
  async begin(subject, _, quick) {
    const count = quick ? 100 : 1_000;
    const session =
      subject.clock === undefined && subject.subscription
        ? await (await subject.prepare!([TIMES]))()
        : undefined;
    const source = subject.clock ?? (session && subject.subscription?.(session, count));
    if (source === undefined) return undefined;
    const { pid = subject.pid } = source;
    let kib = 0;
    return {
      async sample() {
        const before = residentBytes(pid);
        const readers = await Readers.open({
          port: source.port,
          requests: source.requests,
          count,
          stalled: false,
        });
        kib = Math.max(kib, (residentBytes(pid) - before) / KIB / count);
        readers.count();
        await (session?.run(0) ?? sleep(PRINTS * PRINT_EVERY_MS));
        const { delaysMs } = await readers.finish();
        if (session && delaysMs.length < PRINTS * count) {
          throw new Error(`Only ${delaysMs.length} of ${PRINTS * count} lines have arrived.`);
        }
        return [...delaysMs];
      },
      asides: () => [{ label: 'memory of the server for one subscriber', unit: 'KiB', value: kib }],
      end: async () => session?.close(),
    } satisfies Trial;
  },
};

/** How long a large output takes. */
export const output: Comparison = {
  name: 'output',
  title: '10 MiB are printed in lines of 1 KiB: until all of it and the end have arrived',
  unit: 'ms',
  perRound: 1,
  targets: {},
  absent: {
    jupyter: 'its limit of 1 MB per second discards the output',
    limit: "its kernel has marimo's own console writer",
  },
  async begin(subject, { name }) {
    if (subject.prepare === undefined || name === 'limit') return undefined;
    let delivered = 0;
    let growthMiB = 0;
    return {
      async sample() {
        const session = await (await subject.prepare!([PRINT]))();
        const arrived = session.collect();
        const before = residentBytes(subject.pid);
        const startedAt = performance.now();
        const tookMs = (await session.run(0)) - startedAt;
        growthMiB = Math.max(growthMiB, (residentBytes(subject.pid) - before) / MIB);
        delivered = Math.min(1, arrived() / PRINTED);
        await session.close();
        return delivered < 1 ? [] : [tookMs];
      },
      asides: (): Aside[] => [
        { label: 'delivered', unit: '%', value: delivered * 100 },
        { label: 'growth of the server', unit: 'MiB', value: growthMiB },
      ],
      end: async () => undefined,
    };
  },
};
