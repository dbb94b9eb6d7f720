import { type Api, MARK } from '../api.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { openConsoles } from '../load/consoles.ts';
import { atMost, type Measure, spread, spreadOf } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const CONNECTIONS = 8;
const MAX_RATIO = 1.1;

/** What it costs others that operators look. */
export const consoles: Scenario = {
  name: 'consoles',
  title:
    'GETs and runs on a server with many live sessions, while no, one and ten consoles show its overview',
  limitS: 900,
  async run(stage) {
    const sessions = stage.count(1_000, 8);
    const limits = {
      TROUPE_MAX_SESSIONS: String(sessions + 8),
      TROUPE_WORKSPACE_MAX_SESSIONS: String(sessions + 8),
    };
    const { api } = await stage.server({ environment: limits });
    for (let i = 0; i < sessions; i++) await api.session(['x = 1']);
    const { id } = await api.session(['1 + 1']);
    const measures: Measure[] = [];
    const alone = { gets: 0, runs: 0 };
    for (const count of [0, 1, 10]) {
      const opened = count === 0 ? undefined : await openConsoles(api.endpoint, count);
      const gets = await getsOf(api, id, stage.quick);
      const runs = await runsOf(api, id, stage.count(400, 30));
      await opened?.close();
      const p99 = { gets: spreadOf(gets).p99, runs: spreadOf(runs).p99 };
      if (count === 0) Object.assign(alone, p99);
      const label = count === 0 ? 'no console' : count === 1 ? '1 console' : `${count} consoles`;
      measures.push(spread(`GET of a session, ${label}`, gets), spread(`run, ${label}`, runs));
      if (count > 0) {
        measures.push(
          atMost(`p99 of a GET, ${label} to none`, p99.gets / alone.gets, '×', MAX_RATIO),
          atMost(`p99 of a run, ${label} to none`, p99.runs / alone.runs, '×', MAX_RATIO),
        );
      }
    }
    return measures;
  },
};

async function getsOf(api: Api, id: string, quick: boolean): Promise<readonly number[]> {
  const { latenciesMs } = await runClosedLoop({
    port: api.endpoint.port,
    request: api.bytes('GET', `/api/v3/notebook-sessions/${id}`),
    connections: CONNECTIONS,
    warmUpMs: quick ? 300 : 1_000,
    forMs: quick ? 1_000 : 8_000,
    expect: 200,
  });
  return [...latenciesMs];
}

/** Returns how long each run took, from its submission to its end. */
async function runsOf(api: Api, id: string, count: number): Promise<readonly number[]> {
  const feed = await api.follow(id);
  const wire = await api.wire();
  const request = api.executeBytes(id, 'c0');
  const tookMs: number[] = [];
  for (let i = 0; i < count; i++) {
    const completed = feed.until(MARK.completed);
    const sentAt = performance.now();
    const [accepted, completedAt] = await Promise.all([wire.send(request), completed]);
    expected(accepted, 202);
    tookMs.push(completedAt - sentAt);
  }
  feed.close();
  wire.close();
  return tookMs;
}
