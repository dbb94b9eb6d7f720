import { join } from 'node:path';
import { backUp } from '#src/operate/maintenance/backup.ts';
import type { Api } from '../api.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { atMost, type Measure, median, spread } from '../measure.ts';
import { anonymousBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { type Stock, type Stored, seed } from '../seed.ts';
import type { LaunchedServer } from '../server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { expected } from '../wire.ts';

const MIB = 1024 * 1024;
const LITTLE: Stock = { notebooks: 100, sessions: 10, runs: 1_000 };
const MUCH: Stock = { notebooks: 100_000, sessions: 1_000, runs: 1_000_000 };
const MUCH_QUICKLY: Stock = { notebooks: 2_000, sessions: 100, runs: 20_000 };
const PAGE = 50;
/** How much slower a full store may be than a nearly empty one. */
const MOST = 1.1;

/** A data directory, and facts about its content. */
interface Place {
  readonly directory: string;
  readonly stored: Stored;
  readonly startMs: number[];
  readonly readyMs: number[];
}

/** Whether stored records make a server slower. */
export const stored: Scenario = {
  name: 'stored',
  title:
    '1,000,000 runs and 100,000 notebooks in the store, compared with 1,000 and 100: starts, reads, lists, memory, backups',
  limitS: 1_800,
  async run(stage) {
    const folder = temporaryFolder('stored');
    const root = folder.path;
    stage.after(folder.remove);
    const places: Place[] = [];
    for (const [i, stock] of [LITTLE, stage.quick ? MUCH_QUICKLY : MUCH].entries()) {
      const directory = join(root, String(i));
      places.push({ directory, stored: await seed(directory, stock), startMs: [], readyMs: [] });
    }
    const servers = await starts(stage, places);
    const [little, much] = servers.map(({ server }) => server) as [LaunchedServer, LaunchedServer];
    const requests = await Promise.all(
      places.map(({ stored }, i) => requestsOf(servers[i]!.server.api, stored)),
    );
    const rested = comparedMemory('after the start', little, much);
    return [
      ...ratio('start, first answer', places[0]!.startMs, places[1]!.startMs, 'ms'),
      ...ratio('start, ready', places[0]!.readyMs, places[1]!.readyMs, 'ms'),
      ...(await comparedRequests(stage, [little, much], requests)),
      ...(await comparedRates(stage, [little, much], requests)),
      ...rested,
      ...comparedMemory('after all of these', little, much),
      ...(await comparedBackups(stage, places, servers, requests, root)),
    ];
  },
};

/** Starts the servers in turns, some times, and leaves one of each running. */
async function starts(stage: Stage, places: readonly Place[]) {
  const last: { readonly server: LaunchedServer }[] = [];
  const rounds = stage.count(8, 2);
  for (let round = 0; round <= rounds; round++) {
    for (const [i, { directory, startMs, readyMs }] of places.entries()) {
      const server = await stage.server({ dataDir: directory });
      startMs.push(server.firstAnswerMs);
      readyMs.push(server.readyMs);
      if (round < rounds) await server.end();
      else last[i] = { server };
    }
  }
  return last;
}

/** Returns the requests by name. The answers of both servers have the same number of items. */
async function requestsOf(api: Api, { notebookIds, environmentIds }: Stored) {
  const get = async (path: string) => {
    const { items } = await api.call<{ items: readonly { readonly id: string }[] }>('GET', path);
    return items;
  };
  const middle = notebookIds[Math.floor(notebookIds.length / 2)]!;
  const newest = await get(`/api/v3/runs?order=desc&limit=${PAGE + 1}`);
  const newestNotebooks = await get(`/api/v3/notebooks?order=desc&limit=${PAGE + 1}`);
  const session = notebookIds[3]!;
  const paths: Readonly<Record<string, string>> = {
    'GET of a notebook': `/api/v3/notebooks/${middle}`,
    'GET of a run': `/api/v3/runs/${newest[0]!.id}`,
    'runs, first page': `/api/v3/runs?limit=${PAGE}`,
    'runs, page at the end': `/api/v3/runs?limit=${PAGE}&after=${newest[PAGE]!.id}`,
    'runs, failed': '/api/v3/runs?limit=1&status=failed',
    'runs, of a session': `/api/v3/runs?limit=${PAGE}&sessionId=${session}&order=desc`,
    'runs, of an environment': `/api/v3/runs?limit=${PAGE}&environmentId=${environmentIds[3]}`,
    'runs, of a session, failed': `/api/v3/runs?limit=${PAGE}&sessionId=${session}&status=failed`,
    'notebooks, page at the end': `/api/v3/notebooks?limit=${PAGE}&after=${newestNotebooks[PAGE]!.id}`,
    'notebooks, by a title': `/api/v3/notebooks?limit=${PAGE}&title=Notebook%2099`,
    'sessions, open': '/api/v3/notebook-sessions?limit=10&status=open',
  };
  return Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, api.bytes('GET', path)]));
}

type Requests = Readonly<Record<string, Buffer>>;

/** Times every request on both servers in turns. */
async function comparedRequests(
  stage: Stage,
  servers: readonly LaunchedServer[],
  requests: readonly Requests[],
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  const wires = await Promise.all(servers.map(({ api }) => api.wire()));
  for (const name of Object.keys(requests[0]!)) {
    const tookMs = servers.map((): number[] => []);
    for (let i = -20; i < stage.count(400, 40); i++) {
      for (const [at, wire] of wires.entries()) {
        const startedAt = performance.now();
        const answer = expected(await wire.send(requests[at]![name]!), 200);
        if (i >= 0) tookMs[at]!.push(answer.at - startedAt);
      }
    }
    measures.push(...ratio(name, tookMs[0]!, tookMs[1]!, 'ms'));
  }
  for (const wire of wires) wire.close();
  return measures;
}

/** Compares reads and creates under load. */
async function comparedRates(
  stage: Stage,
  servers: readonly LaunchedServer[],
  requests: readonly Requests[],
) {
  const create = { serialization: { cells: [{ cell_id: 'a', code: 'x = 1' }] } };
  const kinds = [
    ['GETs of a notebook per second', 200, (i: number) => requests[i]!['GET of a notebook']!],
    ['creates per second', 201, (i: number) => servers[i]!.api.bytes('POST', '/api/v3/notebooks', create)],
  ] as const;
  const measures: Measure[] = [];
  for (const [name, expect, requestOf] of kinds) {
    const rates = servers.map((): number[] => []);
    for (let round = 0; round < stage.count(5, 2); round++) {
      for (const [i, { api }] of servers.entries()) {
        const loop = { port: api.endpoint.port, request: requestOf(i), connections: 32, expect };
        const { perSecond } = await runClosedLoop({
          ...loop,
          warmUpMs: 300,
          forMs: stage.quick ? 300 : 1_000,
        });
        rates[i]!.push(perSecond);
      }
    }
    const [little, much] = rates.map(median) as [number, number];
    measures.push(
      atMost(`${name}, much`, much, '/s'),
      atMost(`${name}, little to much`, little / much, '×', MOST),
    );
  }
  return measures;
}

/** Pages of the store's file count as file pages: the system takes them back when it needs them. */
function comparedMemory(when: string, little: LaunchedServer, much: LaunchedServer): readonly Measure[] {
  const [before, after] = [anonymousBytes(little.pid), anonymousBytes(much.pid)];
  return [
    atMost(`memory of its own ${when}, much`, after / MIB, 'MiB'),
    atMost(`memory of its own ${when}, much to little`, after / before, '×', MOST),
  ];
}

/** The duration of a backup grows with its bytes; requests should not notice it. */
async function comparedBackups(
  stage: Stage,
  places: readonly Place[],
  servers: readonly { readonly server: LaunchedServer }[],
  requests: readonly Requests[],
  root: string,
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  const during: number[][] = [];
  for (const [i, { directory }] of places.entries()) {
    const wire = await servers[i]!.server.api.wire();
    const tookMs: number[] = [];
    let isOver = false;
    const asking = (async () => {
      while (!isOver || tookMs.length < stage.count(200, 50)) {
        const startedAt = performance.now();
        tookMs.push(expected(await wire.send(requests[i]!['GET of a notebook']!), 200).at - startedAt);
      }
    })();
    const startedAt = performance.now();
    const { store } = await backUp({ dataDir: directory, to: join(root, `backup-${i}`) });
    const seconds = (performance.now() - startedAt) / 1000;
    isOver = true;
    await asking;
    wire.close();
    during.push(tookMs);
    const which = i === 0 ? 'little' : 'much';
    measures.push(
      atMost(`backup, ${which}`, seconds * 1000, 'ms'),
      atMost(`backup, ${which}, size of the store`, store.bytes / MIB, 'MiB'),
    );
  }
  return [...measures, ...ratio('GET of a notebook during a backup', during[0]!, during[1]!, 'ms')];
}

function ratio(
  label: string,
  little: readonly number[],
  much: readonly number[],
  unit: 'ms',
): readonly Measure[] {
  return [
    spread(`${label}, little`, little, {}, unit),
    spread(`${label}, much`, much, {}, unit),
    atMost(`${label}, much to little`, median(much) / median(little), '×', MOST),
  ];
}
