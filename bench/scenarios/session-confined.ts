import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../api.ts';
import { MARK } from '../api.ts';
import { Feed } from '../feed.ts';
import { atMost, median, spread } from '../measure.ts';
import { processTree } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import { expected, type Wire } from '../wire.ts';

/** Sessions that are opened first on each server and not counted. */
const WARM_UP = 5;

/** The cost of confinement. */
export const sessionConfined: Scenario = {
  name: 'session-confined',
  title: 'From the POST that opens a session until ready: kernels confined and not, in turn',
  limitS: 90,
  async run(stage) {
    const places = [];
    for (const confinement of ['auto', 'off']) {
      const server = await stage.server({ environment: { TROUPE_KERNEL_CONFINEMENT: confinement } });
      places.push({ server, wire: await server.api.wire(), readyMs: [] as number[] });
    }
    const rounds = stage.count(100, 40);
    for (let round = -WARM_UP; round < rounds; round++) {
      // The first server influences the figures of the second, so the order alternates.
      for (const { server, wire, readyMs } of round % 2 === 0 ? places : places.toReversed()) {
        const idle = processTree(server.pid).length;
        const ms = await readyAfter(server.api, wire);
        await ended(() => processTree(server.pid).length <= idle);
        if (round >= 0) readyMs.push(ms);
      }
    }
    const [confined, free] = places.map(({ readyMs }) => readyMs);
    return [
      spread('confined', confined!),
      spread('not confined', free!),
      atMost('median of confined above the other', median(confined!) - median(free!), 'ms', 5),
    ];
  },
};

/** Opens a session and closes it again. Returns the milliseconds until its stream said ready. */
async function readyAfter(api: Api, wire: Wire): Promise<number> {
  const id = await api.notebook(['x = 1\nx + 1']);
  const open = api.openBytes(id, await api.environment());
  const startedAt = performance.now();
  expected(await wire.send(open), 202);
  const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
  const readyAt = await seen[0]!;
  feed.close();
  await api.close(id);
  return readyAt - startedAt;
}

/** Waits, because the end of a session takes processor time from the start of the next one. */
async function ended(fact: () => boolean): Promise<void> {
  for (let tries = 0; tries < 500 && !fact(); tries++) await sleep(2);
}
