import type { Api } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { type RunningSession, runTogether } from '../load/run-together.ts';
import { atLeast, atMost, spread } from '../measure.ts';
import { mainThreadMs } from '../processes.ts';
import type { Scenario } from '../scenario.ts';

const SESSIONS = 8;

const unit: UnitOfWork = {
  name: 'run',
  count: 1_600,
  async prepare({ api }) {
    const sessions = await openSessions(api);
    return { perform: (count) => runTogether(sessions, Infinity, count / SESSIONS) };
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
    const sessions = await openSessions(api);
    await runTogether(sessions, stage.quick ? 300 : 1_500);
    const cpuBefore = mainThreadMs(pid);
    const { perSecond, tookMs } = await runTogether(sessions, stage.quick ? 1_000 : 5_000);
    const cpuMs = mainThreadMs(pid) - cpuBefore;
    return [
      atLeast('runs', perSecond, '/s', 700),
      spread('submit to terminal status', tookMs),
      atMost('CPU of the server for a run', (cpuMs * 1000) / tookMs.length, 'µs'),
    ];
  },
};

async function openSessions(api: Api): Promise<readonly RunningSession[]> {
  const sessions: RunningSession[] = [];
  for (let i = 0; i < SESSIONS; i++) sessions.push({ api, id: (await api.session(['1 + 1'])).id });
  return sessions;
}
