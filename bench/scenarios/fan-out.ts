import { MARK } from '../api.ts';
import { repeatRuns } from '../counting/repeated-runs.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { Readers, TIME_MARK } from '../load/readers.ts';
import { atMost, type Measure, spread } from '../measure.ts';
import { mainThreadMs, residentBytes } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

/** Returns Python code that prints the time five times per second. */
const code = (prints: number) =>
  `import time as _time\nfor _ in range(${prints}):\n    print(f"${TIME_MARK}{_time.time() * 1000:017.3f}")\n    _time.sleep(0.2)`;

const UNIT_READERS = 200;
const LINES_A_RUN = 10;

const unit: UnitOfWork = {
  name: `line to ${UNIT_READERS} subscribers`,
  count: 40,
  quickCount: 10,
  async prepare({ api }) {
    const { id } = await api.session([code(LINES_A_RUN)]);
    const feed = await api.follow(id);
    const wire = await api.wire();
    const request = api.bytes('GET', `/api/v3/notebook-sessions/${id}/events`);
    const options = { port: api.endpoint.port, requests: [request], count: UNIT_READERS, stalled: false };
    (await Readers.open(options)).leaveOpen();
    return {
      feed,
      perform: (count) => repeatRuns(feed, wire, api.executeBytes(id, 'c0'), Math.ceil(count / LINES_A_RUN)),
    };
  },
};

/** How late events reach many subscribers. */
export const fanOut: Scenario = {
  name: 'fan-out',
  title: 'A line printed 5 times per second, from print() to each of many subscribers',
  limitS: 180,
  unit,
  async run(stage) {
    const measures: Measure[] = [];
    for (const [count, p99] of [
      [100, 8],
      [1_000, 25],
      [5_000, 80],
    ] as const) {
      const { api, pid, untilIdle, end } = await stage.server();
      const prints = stage.count(40, 10);
      const { id } = await api.session([code(3), code(prints)]);
      const feed = await api.follow(id);
      const request = api.bytes('GET', `/api/v3/notebook-sessions/${id}/events`);
      const { port } = api.endpoint;
      // Traffic of any kind makes the server reserve memory, which does not count as the cost of a subscriber.
      const traffic = api.bytes('GET', `/api/v3/notebook-sessions/${id}`);
      await runClosedLoop({
        port,
        request: traffic,
        connections: 16,
        warmUpMs: 0,
        forMs: 2_000,
        expect: 200,
      });
      await (await Readers.open({ port, requests: [request], count: 100, stalled: false })).finish();
      await untilIdle();
      const memoryBefore = residentBytes(pid);
      const readers = await Readers.open({ port, requests: [request], count, stalled: false });
      await untilIdle();
      const memoryAfter = residentBytes(pid);
      await runCell('c0');
      readers.count();
      const cpuBefore = mainThreadMs(pid);
      await runCell('c1');
      const cpuMs = mainThreadMs(pid) - cpuBefore;
      const { delaysMs } = await readers.finish(prints * count);
      if (delaysMs.length < prints * count) {
        throw new Error(`Only ${delaysMs.length} of ${prints * count} lines have arrived.`);
      }
      const readerKiB = (memoryAfter - memoryBefore) / 1024 / count;
      measures.push(
        spread(`${count} subscribers`, delaysMs, { p99 }),
        atMost(
          `${count} subscribers, memory of the server for one`,
          readerKiB,
          'KiB',
          count < 1_000 ? undefined : 4,
        ),
        atMost(
          `${count} subscribers, CPU of the server for one line at one`,
          (cpuMs * 1000) / (prints * count),
          'µs',
        ),
      );
      feed.close();
      await end();

      async function runCell(cellId: string): Promise<void> {
        const wire = await api.wire(); // the server closes a connection that was silent while the readers connected
        const completed = feed.until(MARK.completed);
        expected(await wire.send(api.executeBytes(id, cellId)), 202);
        wire.close();
        await completed;
      }
    }
    return measures;
  },
};
