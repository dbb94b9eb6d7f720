import { type Api, MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { atLeast, atMost, spread } from '../measure.ts';
import { mainThreadMs } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const SESSIONS = 8;

const unit: UnitOfWork = {
  name: 'run',
  count: 1_600,
  async prepare({ api }) {
    const ids: string[] = [];
    for (let i = 0; i < SESSIONS; i++) ids.push((await api.session(['1 + 1'])).id);
    return { perform: (count) => runTogether(api, ids, Infinity, count / SESSIONS) };
  },
};

/** How many durable runs a server completes. */
export const runSubmits: Scenario = {
  name: 'run-submits',
  title: '8 sessions, each of which submits its next durable run when the last one has ended',
  limitS: 60,
  unit,
  async run(stage) {
    const { api, pid } = await stage.server();
    const ids: string[] = [];
    for (let i = 0; i < SESSIONS; i++) ids.push((await api.session(['1 + 1'])).id);
    await runTogether(api, ids, stage.quick ? 300 : 1_500);
    const cpuBefore = mainThreadMs(pid);
    const { perSecond, tookMs } = await runTogether(api, ids, stage.quick ? 1_000 : 5_000);
    const cpuMs = mainThreadMs(pid) - cpuBefore;
    return [
      atLeast('runs', perSecond, '/s', 700),
      spread('submit to terminal status', tookMs),
      atMost('CPU of the server for a run', (cpuMs * 1000) / tookMs.length, 'µs'),
    ];
  },
};

/** Runs until the time is over, or until each session has done as many as `each`. */
async function runTogether(api: Api, ids: readonly string[], forMs: number, each = Infinity) {
  const tookMs: number[] = [];
  const startedAt = performance.now();
  await Promise.all(
    ids.map(async (id) => {
      const feed = await api.follow(id);
      const wire = await api.wire();
      const request = api.executeBytes(id, 'c0');
      for (let done = 0; done < each && performance.now() - startedAt < forMs; done++) {
        const completed = feed.until(MARK.completed);
        const sentAt = performance.now();
        const [accepted, completedAt] = await Promise.all([wire.send(request), completed]);
        expected(accepted, 202);
        tookMs.push(completedAt - sentAt);
      }
      feed.close();
      wire.close();
    }),
  );
  return { perSecond: (tookMs.length * 1000) / (performance.now() - startedAt), tookMs };
}
