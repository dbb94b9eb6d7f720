import { setTimeout as sleep } from 'node:timers/promises';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { Api } from '../api.ts';
import { CpuQuotas, whyNoQuotas } from '../cpu-quota.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { type RunningSession, runTogether } from '../load/run-together.ts';
import { atLeast, atMost, type Measure, median, spread } from '../measure.ts';
import { ACCEPTED_WITHIN_MS, acceptedBy, busiest, cpuMs, servingProcesses } from '../processes.ts';
import { type Scenario, Skipped, type Stage } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';
import { expected, type Wire } from '../wire.ts';

const SIZES = [1, 2, 4] as const;
const MOST = Math.max(...SIZES);
/**
 * The quota of each worker, as a share of a core, with which four workers, the kernels and the load fit on
 * two cores.
 */
const QUOTA = 0.15;
const CONNECTIONS = 64;
const WARM_UP_MS = 500;
/** Sessions, all in one workspace, and divided evenly between any number of workers. */
const SESSIONS = 8;
const CREATE = { serialization: { cells: [{ cell_id: 'a', code: 'x = 1' }] } };
const MIB = 1024 * 1024;
const PRINT = `for i in range(${(10 * MIB) / 1024}):\n    print("x" * 1023)`;

interface Subject {
  readonly size: number;
  readonly server: LaunchedServer;
  readonly serving: readonly number[];
  readonly sessions: readonly RunningSession[];
  /**
   * The cost of a request, without quotas, because a process needs more processor time when a quota stops it again
   * and again.
   */
  readonly free: Figures;
  /**
   * The cost of a request, without quotas, under a load that grows with the number of workers. So each worker has as
   * much work as a single worker alone.
   */
  readonly alike: Pick<Figures, 'getUs' | 'runUs'>;
  /** The number of requests in a second, with quotas. */
  readonly limited: Figures;
}

type Figures = Record<Figure, number[]>;
type Figure = 'gets' | 'creates' | 'runs' | 'getUs' | 'runUs';

/** The gain and the cost of more workers. */
export const workers: Scenario = {
  name: 'workers',
  title: `Servers of ${SIZES.join(', ')} workers, each of which may use ${QUOTA * 100} % of a core; ${SESSIONS} sessions of one workspace`,
  limitS: 480,
  async run(stage) {
    const why = whyNoQuotas();
    if (why !== undefined) throw new Skipped(why);
    const quotas = new CpuQuotas(QUOTA);
    stage.after(() => quotas.remove()); // after the servers have ended
    const subjects: Subject[] = [];
    for (const size of SIZES) subjects.push(await start(stage, size));
    const [rounds, forMs] = [stage.count(5, 1), stage.quick ? 1_000 : 2_000];
    // Until their code is compiled, servers are slower. Each of several workers compiles it for
    // itself.
    for (const subject of subjects) await measure(subject, subject.size * forMs, none());
    // The servers take turns, so that a busy moment of the machine affects all of them.
    for (let round = 0; round < rounds; round++) {
      for (const subject of subjects) {
        await measure(subject, forMs, subject.free);
        await measureAlike(subject, forMs);
      }
    }
    for (const { serving } of subjects) for (const pid of serving) quotas.limit(pid);
    for (let round = 0; round < rounds; round++) {
      for (const subject of subjects) await measure(subject, forMs, subject.limited);
    }
    for (const { server } of subjects) await server.end();
    return [...compare(subjects), ...(await whileOutputFolds(stage))];
  },
};

async function start(stage: Stage, size: number): Promise<Subject> {
  const server = await stage.server({ environment: { TROUPE_WORKERS: String(size) } });
  const sessions = await evenSessions(server.api);
  return {
    size,
    server,
    serving: servingProcesses(server.pid),
    sessions,
    free: none(),
    alike: { getUs: [], runUs: [] },
    limited: none(),
  };
}

function none(): Figures {
  return { gets: [], creates: [], runs: [], getUs: [], runUs: [] };
}

/** Opens sessions, the same number in every worker. */
async function evenSessions(api: Api): Promise<readonly RunningSession[]> {
  const sessions: RunningSession[] = [];
  const counts = new Map<number, number>();
  while (sessions.length < SESSIONS) {
    const { id } = await api.session(['1 + 1']);
    const place = placeOf({ api, id });
    const count = counts.get(place) ?? 0;
    if (count === SESSIONS / MOST) await api.close(id);
    else {
      counts.set(place, count + 1);
      sessions.push({ api, id });
    }
  }
  return sessions;
}

/**
 * Returns which worker has the session, in a server with the largest number of workers. Slots are given to the
 * workers in turn.
 */
function placeOf({ api, id }: RunningSession): number {
  return slotOf(api.endpoint.workspaceId, id) % MOST;
}

async function measure(subject: Subject, forMs: number, figures: Figures): Promise<void> {
  const { server, sessions } = subject;
  const gets = await measureGets(subject, forMs, CONNECTIONS);
  figures.getUs.push(gets.us);
  figures.gets.push(gets.perSecond);
  const request = server.api.bytes('POST', '/api/v3/notebooks', CREATE);
  const { port } = server.api.endpoint;
  const load = { port, request, connections: CONNECTIONS, warmUpMs: WARM_UP_MS, forMs, expect: 201 };
  figures.creates.push((await runClosedLoop(load)).perSecond);
  const runs = await measureRuns(subject, forMs, sessions);
  figures.runUs.push(runs.us);
  figures.runs.push(runs.perSecond);
}

async function measureAlike(subject: Subject, forMs: number): Promise<void> {
  const { size, sessions, alike } = subject;
  alike.getUs.push((await measureGets(subject, forMs, (CONNECTIONS / MOST) * size)).us);
  const some = sessions.filter((session) => placeOf(session) < size);
  alike.runUs.push((await measureRuns(subject, forMs, some)).us);
}

interface Cost {
  readonly perSecond: number;
  /** Processor time of the server for one request, in microseconds. */
  readonly us: number;
}

async function measureGets(subject: Subject, forMs: number, connections: number): Promise<Cost> {
  const { server, sessions } = subject;
  const request = sessions.map(({ api, id }) => api.bytes('GET', `/api/v3/notebooks/${id}`));
  const { port } = server.api.endpoint;
  let before = 0;
  const load = { port, request, connections, warmUpMs: WARM_UP_MS, forMs, expect: 200 };
  const { perSecond, latenciesMs } = await runClosedLoop(load, () => {
    before = usedMs(subject);
  });
  return { perSecond, us: ((usedMs(subject) - before) * 1000) / latenciesMs.length };
}

async function measureRuns(
  subject: Subject,
  forMs: number,
  sessions: readonly RunningSession[],
): Promise<Cost> {
  await runTogether(sessions, WARM_UP_MS);
  const before = usedMs(subject);
  const { perSecond, tookMs } = await runTogether(sessions, forMs);
  return { perSecond, us: ((usedMs(subject) - before) * 1000) / tookMs.length };
}

function usedMs({ server, serving }: Subject): number {
  return cpuMs([...new Set([server.pid, ...serving])]);
}

function compare(subjects: readonly Subject[]): readonly Measure[] {
  const one = subjects[0]!;
  const free = ({ free }: Subject, figure: Figure) => ratio(free[figure], one.free[figure]);
  const alike = ({ alike }: Subject, figure: 'getUs' | 'runUs') => ratio(alike[figure], one.alike[figure]);
  const limited = ({ limited }: Subject, figure: Figure) => ratio(limited[figure], one.limited[figure]);
  return subjects.flatMap((subject): Measure[] => {
    const { size } = subject;
    const who = size === 1 ? '1 worker' : `${size} workers`;
    const own = [
      atLeast(`${who}, GETs of notebooks`, median(subject.limited.gets), '/s'),
      atLeast(`${who}, durable creates`, median(subject.limited.creates), '/s'),
      atLeast(`${who}, durable runs`, median(subject.limited.runs), '/s'),
      atMost(`${who}, CPU of the server for a GET, no quota`, median(subject.free.getUs), 'µs'),
      atMost(`${who}, CPU of the server for a run, no quota`, median(subject.free.runUs), 'µs'),
    ];
    if (subject === one) return own;
    return [
      ...own,
      atLeast(`${who} to 1, GETs`, limited(subject, 'gets'), '×', 0.8 * size),
      atLeast(`${who} to 1, durable creates`, limited(subject, 'creates'), '×'),
      atLeast(`${who} to 1, durable runs`, limited(subject, 'runs'), '×'),
      atMost(`${who} to 1, CPU for a GET`, free(subject, 'getUs'), '×', 1.05),
      atMost(`${who} to 1, CPU for a run`, free(subject, 'runUs'), '×', 1.08),
      atMost(`${who} to 1, CPU for a GET, as many connections a worker`, alike(subject, 'getUs'), '×', 1.05),
      atMost(`${who} to 1, CPU for a run, as many sessions a worker`, alike(subject, 'runUs'), '×', 1.08),
    ];
  });
}

/**
 * Returns the median of the ratios of the rounds. In each round the two figures were measured one after the other.
 */
function ratio(values: readonly number[], base: readonly number[]): number {
  return median(values.map((value, round) => value / base[round]!));
}

/** Reads at one worker while another one (or the only one) processes the printed text of a cell. There are no quotas. */
async function whileOutputFolds(stage: Stage): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  for (const size of [1, 2]) {
    const server = await stage.server({ environment: { TROUPE_WORKERS: String(size) } });
    const { api } = server;
    const serving = servingProcesses(server.pid);
    const { id } = await api.session([PRINT]);
    const home = await busiest(serving, () => api.run(id, 'c0'));
    const wire = await wireTo(api, serving.find((pid) => pid !== home) ?? home);
    const request = api.bytes('GET', `/api/v3/notebooks/${id}`);
    const tookMs: number[] = [];
    for (let round = 0; round < stage.count(10, 2); round++)
      tookMs.push(...(await readDuringRun(api, id, wire, request)));
    const where = size === 1 ? 'the only worker, which' : 'one worker while another';
    measures.push(spread(`GET at ${where} takes in 10 MiB of output`, tookMs));
    await server.end();
  }
  return measures;
}

/** Opens connections until the process has accepted one. */
async function wireTo(api: Api, pid: number): Promise<Wire> {
  for (;;) {
    const wire = await api.wire();
    await sleep(ACCEPTED_WITHIN_MS);
    if (acceptedBy(pid, api.endpoint.port).has(wire.localPort)) return wire;
    wire.close();
  }
}

async function readDuringRun(api: Api, id: string, wire: Wire, request: Buffer): Promise<readonly number[]> {
  const tookMs: number[] = [];
  let isOver = false;
  const run = api.run(id, 'c0').finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const sentAt = performance.now();
    expected(await wire.send(request), 200);
    tookMs.push(performance.now() - sentAt);
  }
  await run;
  return tookMs;
}
