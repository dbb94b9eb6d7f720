import { setTimeout as sleep } from 'node:timers/promises';
import { type Api, MARK } from '../api.ts';
import { Feed } from '../feed.ts';
import { atMost, type Measure, spread, spreadOf } from '../measure.ts';
import { nameOf, processTree } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';
import { expected, type Wire } from '../wire.ts';
import { cancelOnce, LOOP } from './cancel.ts';

/** The process that forks kernels. */
const HOST = 'troupe-zygote';
const FIRST_MS = 10_000;
/** The slowest operation of the first seconds may take this many times as long as later ones. */
const MOST = 1.5;
const MAX_READY_WAIT_MS = 30_000;

/** The durations of operations within a period, in milliseconds. */
interface Times {
  readonly open: number[];
  readonly run: number[];
  readonly cancel: number[];
}

/** Compares the first seconds of a ready server with later ones. */
export const firstSeconds: Scenario = {
  name: 'first-seconds',
  title:
    'Opening a session, running `1 + 1` and cancelling a loop: in the first 10 s after ready, after a restart of the kernel host, and later',
  limitS: 400,
  async run(stage) {
    const [first, restarted, later] = [noTimes(), noTimes(), noTimes()];
    const forMs = stage.quick ? 5_000 : FIRST_MS;
    for (let round = 0; round < stage.count(5, 1); round++) {
      const server = await stage.server({ waitUntilIdle: false });
      await useFor(server, forMs, first);
      await server.untilIdle();
      await useFor(server, forMs, later);
      await restartHost(server);
      await useFor(server, forMs, restarted);
      await server.end();
    }
    return [
      ...compared('after ready', first, later),
      ...compared('after a restart of the host', restarted, later),
    ];
  },
};

function noTimes(): Times {
  return { open: [], run: [], cancel: [] };
}

/** Opens sessions, and makes runs and cancels in them, one after the other. */
async function useFor({ api }: LaunchedServer, forMs: number, times: Times): Promise<void> {
  const until = performance.now() + forMs;
  const wire = await api.wire();
  while (performance.now() < until) {
    const { id, feed, tookMs } = await openSession(api, wire);
    times.open.push(tookMs);
    times.run.push(await runOnce(api, id, feed, wire));
    times.cancel.push(await cancelOnce(api, id, feed, wire));
    feed.close();
    await api.close(id);
  }
  wire.close();
}

async function openSession(api: Api, wire: Wire) {
  const id = await api.notebook([LOOP, '1 + 1']);
  const open = api.openBytes(id, await api.environment());
  const startedAt = performance.now();
  expected(await wire.send(open), 202);
  const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
  return { id, feed, tookMs: (await seen[0]!) - startedAt };
}

async function runOnce(api: Api, id: string, feed: Feed, wire: Wire): Promise<number> {
  const completed = feed.until(MARK.completed);
  const startedAt = performance.now();
  expected(await wire.send(api.executeBytes(id, 'c1')), 202);
  return (await completed) - startedAt;
}

/** Kills the kernel host, and waits until the server is ready again. */
async function restartHost({ pid, api }: LaunchedServer): Promise<void> {
  const host = processTree(pid).find((one) => nameOf(one) === HOST);
  if (host === undefined) throw new Error('There is no kernel host.');
  process.kill(host, 'SIGKILL');
  const wire = await api.wire();
  const request = api.bytes('GET', '/readyz');
  const deadline = performance.now() + MAX_READY_WAIT_MS;
  const isReady = async () => (await wire.send(request)).status === 200;
  while (await isReady()) await sleep(1); // the server notices the end of the host only after a moment
  while (!(await isReady())) {
    if (performance.now() > deadline) throw new Error('The kernel host did not come back.');
    await sleep(2);
  }
  wire.close();
}

function compared(when: string, times: Times, later: Times): readonly Measure[] {
  return (['open', 'run', 'cancel'] as const).flatMap((what) => [
    spread(`${what} ${when}`, times[what]),
    spread(`${what} later`, later[what]),
    atMost(`${what}, p99 ${when} to later`, spreadOf(times[what]).p99 / spreadOf(later[what]).p99, '×', MOST),
  ]);
}
