import type { UnitOfWork } from '../counting/unit.ts';
import { type ClosedLoop, runClosedLoop } from '../load/closed-loop.ts';
import { startRawServer } from '../load/raw-server.ts';
import { sendTogether } from '../load/send-together.ts';
import { atLeast, atMost, type Measure, median, spread } from '../measure.ts';
import { mainThreadMs } from '../processes.ts';
import type { Scenario } from '../scenario.ts';

const CONNECTIONS = 64;

interface Subject {
  readonly label: string;
  readonly pid: number;
  readonly port: number;
  readonly request: Buffer;
  readonly perSecond?: number;
}

const unit: UnitOfWork = {
  name: 'GET of a notebook',
  count: 4_000,
  async prepare({ api }) {
    const id = await api.notebook(['x = 1', 'x + 1']);
    const request = api.bytes('GET', `/api/v3/notebooks/${id}`);
    return { perform: (count) => sendTogether(api, request, count, 200) };
  },
};

/** How fast records are read. */
export const gets: Scenario = {
  name: 'gets',
  title: `GETs per second over ${CONNECTIONS} connections, compared with a fixed response of uWebSockets.js alone`,
  limitS: 90,
  unit,
  async run(stage) {
    const { api, pid } = await stage.server();
    const raw = await startRawServer();
    stage.after(() => raw.end());
    const { id } = await api.session(['x = 1', 'x + 1']);
    const { port } = api.endpoint;
    const subjects: Subject[] = [
      { label: 'fixed answer', pid: raw.pid, port: raw.port, request: api.bytes('GET', '/fixed') },
      {
        label: 'notebook',
        pid,
        port,
        request: api.bytes('GET', `/api/v3/notebooks/${id}`),
        perSecond: 60_000,
      },
      {
        label: 'session',
        pid,
        port,
        request: api.bytes('GET', `/api/v3/notebook-sessions/${id}`),
        perSecond: 40_000,
      },
    ];
    const rounds = subjects.map((): Awaited<ReturnType<typeof measure>>[] => []);
    // The servers take turns, so that a busy moment of the machine affects all of them.
    for (let round = 0; round < stage.count(5, 2); round++) {
      for (const [i, subject] of subjects.entries()) rounds[i]!.push(await measure(subject, stage.quick));
    }
    return subjects.flatMap(({ label, perSecond }, i): Measure[] => {
      const results = rounds[i]!;
      return [
        atLeast(label, median(results.map((one) => one.perSecond)), '/s', perSecond),
        spread(
          `${label}, answer`,
          results.flatMap((one) => [...one.latenciesMs]),
          perSecond ? { p99: 5 } : {},
        ),
        atMost(`${label}, CPU of the server`, median(results.map((one) => one.cpuUs)), 'µs'),
        atMost(`${label}, share of a core`, median(results.map((one) => one.share)) * 100, '%'),
      ];
    });
  },
};

async function measure({ pid, port, request }: Subject, quick: boolean) {
  const loop: ClosedLoop = {
    port,
    request,
    connections: CONNECTIONS,
    warmUpMs: quick ? 300 : 700,
    forMs: quick ? 500 : 1_500,
    expect: 200,
  };
  let before = 0;
  const result = await runClosedLoop(loop, () => {
    before = mainThreadMs(pid);
  });
  const cpuMs = mainThreadMs(pid) - before;
  const count = result.latenciesMs.length;
  return { ...result, cpuUs: (cpuMs * 1000) / count, share: cpuMs / (result.to - result.from) };
}
