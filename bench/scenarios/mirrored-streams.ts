import { Readers, TIME_MARK } from '../load/readers.ts';
import { atMost, type Measure, spread } from '../measure.ts';
import { busiest, mainThreadMs, servingProcesses } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';

const COUNTS = [1, 100, 1_000] as const;
const PRINTS_A_SECOND = 25;

/** Returns Python code that prints the time, each time as an event of its own. */
const code = (prints: number) =>
  `import time as _time\nfor _ in range(${prints}):\n` +
  `    print(f"${TIME_MARK}{_time.time() * 1000:017.3f}")\n    _time.sleep(${1 / PRINTS_A_SECOND})`;

/** The cost of subscribers that are connected to another worker than the home of the session. */
export const mirroredStreams: Scenario = {
  name: 'mirrored-streams',
  title: `A line printed ${PRINTS_A_SECOND} times per second, to subscribers of the only process and to those at another worker`,
  limitS: 180,
  async run(stage) {
    const measures: Measure[] = [];
    for (const size of [1, 2]) {
      const server = await stage.server({ environment: { TROUPE_WORKERS: String(size) } });
      measures.push(...(await followed(server, size, stage)));
      await server.end();
    }
    return measures;
  },
};

async function followed(
  { api, pid, untilIdle }: LaunchedServer,
  size: number,
  stage: Stage,
): Promise<readonly Measure[]> {
  const prints = stage.count(200, 25);
  const serving = servingProcesses(pid);
  const { id } = await api.session(['for _ in range(20_000): print("x" * 200)', code(prints)]);
  const home = await busiest(serving, () => api.run(id, 'c0'));
  const other = serving.find((one) => one !== home) ?? home;
  const requests = [api.bytes('GET', `/api/v3/notebook-sessions/${id}/events`)];
  const { port } = api.endpoint;
  const measures: Measure[] = [];
  for (const count of COUNTS) {
    const readers = await Readers.open({ port, requests, count, stalled: false, acceptedBy: other });
    await untilIdle();
    readers.count();
    const before = [home, other].map(mainThreadMs);
    await api.run(id, 'c1');
    const [homeUs = 0, otherUs = 0] = [home, other].map(
      (process, i) => ((mainThreadMs(process) - before[i]!) * 1000) / prints,
    );
    const { delaysMs } = await readers.finish(prints * count);
    if (delaysMs.length < prints * count) {
      throw new Error(`Only ${delaysMs.length} of ${prints * count} lines have arrived.`);
    }
    const who = `${count} ${count === 1 ? 'subscriber' : 'subscribers'}`;
    if (size === 1) {
      measures.push(
        spread(`${who} of one process`, delaysMs),
        atMost(`${who} of one process, CPU for one line`, homeUs, 'µs'),
      );
    } else {
      measures.push(
        spread(`${who} at another worker`, delaysMs),
        atMost(`${who} at another worker, CPU of the home for one line`, homeUs, 'µs'),
        atMost(`${who} at another worker, CPU of that worker for one line`, otherUs, 'µs'),
      );
    }
  }
  return measures;
}
