import { setTimeout as later } from 'node:timers/promises';
import type { Api } from '../api.ts';
import { MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { Feed } from '../feed.ts';
import { type Measure, spread } from '../measure.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { expected } from '../wire.ts';

const TOGETHER = 10;
/** The number of sessions that are opened one after the other, and the milliseconds for all of them. */
const STEADY = 200;
const STEADY_MS = 10_000;

const unit: UnitOfWork = {
  name: `session, of ${TOGETHER} at once`,
  count: 3 * TOGETHER,
  quickCount: TOGETHER,
  async prepare({ api }) {
    return {
      async perform(count) {
        for (let i = 0; i < count; i += TOGETHER) await startTogether(api, TOGETHER);
      },
    };
  },
};

/** How fast many sessions open together. */
export const sessionStarts: Scenario = {
  name: 'session-starts',
  title: 'Many sessions opened at once, until the last one is ready, and many opened in ten seconds',
  limitS: 240,
  unit,
  async run(stage) {
    const { api, untilIdle } = await stage.server();
    await startTogether(api, 4);
    const measures: Measure[] = [];
    for (const [count, limit] of [
      [10, 250],
      [40, 900],
    ] as const) {
      const lastMs: number[] = [];
      for (let i = 0; i < stage.count(5, 2); i++) {
        await untilIdle();
        lastMs.push(await startTogether(api, count));
      }
      measures.push(spread(`last of ${count}`, lastMs, { p50: limit }));
    }
    return [...measures, ...(await measureSteadyStarts(stage))];
  },
};

/** Opens sessions at a steady rate, and runs a cell of each while all are open. */
async function measureSteadyStarts(stage: Stage): Promise<readonly Measure[]> {
  const count = stage.count(STEADY, 20);
  const server = await stage.server();
  const { api } = server;
  const openings: Buffer[] = [];
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    const id = await api.notebook(['1 + 1']);
    ids.push(id);
    openings.push(api.openBytes(id, await api.environment()));
  }
  await server.untilIdle();
  const readyMs = await Promise.all(
    openings.map(async (open, i) => {
      await later((i * STEADY_MS) / STEADY);
      const wire = await api.wire();
      const startedAt = performance.now();
      expected(await wire.send(open), 202);
      wire.close();
      const { feed, seen } = await Feed.open(api.endpoint, ids[i]!, MARK.ready);
      const readyAt = await seen[0]!;
      feed.close();
      return readyAt - startedAt;
    }),
  );
  const runMs: number[] = [];
  for (const id of ids) {
    const startedAt = performance.now();
    await api.run(id, 'c0');
    runMs.push(performance.now() - startedAt);
  }
  for (const id of ids) await api.close(id);
  return [
    spread(`ready, of ${count} opened in ${(count * STEADY_MS) / STEADY / 1000} s`, readyMs),
    spread(`run, while ${count} are open`, runMs),
  ];
}

/** Opens sessions and closes them again. Returns the milliseconds from the first POST to the last `ready`. */
async function startTogether(api: Api, count: number): Promise<number> {
  const starts = [];
  for (let i = 0; i < count; i++) {
    const id = await api.notebook(['x = 1\nx + 1']);
    starts.push({ id, open: api.openBytes(id, await api.environment()), wire: await api.wire() });
  }
  const startedAt = performance.now();
  const feeds = await Promise.all(
    starts.map(async ({ id, open, wire }) => {
      expected(await wire.send(open), 202);
      const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
      return { feed, readyAt: seen[0]! };
    }),
  );
  const ready = await Promise.all(feeds.map(({ readyAt }) => readyAt));
  for (const { feed } of feeds) feed.close();
  for (const { id, wire } of starts) {
    wire.close();
    await api.close(id);
  }
  return Math.max(...ready) - startedAt;
}
