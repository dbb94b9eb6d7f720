import type { Api } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { atLeast, spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const SESSIONS = 8;

const unit: UnitOfWork = {
  name: 'call',
  count: 400,
  async prepare({ api }) {
    const { id } = await api.session(['x = 1']);
    return { perform: (count) => callAgain(api, id, count) };
  },
};

/** Measures the latency of the code endpoint. */
export const codeCall: Scenario = {
  name: 'code-call',
  title: 'One call of the code endpoint with `1+1`; then 8 sessions that call it without a pause',
  limitS: 60,
  unit,
  async run(stage) {
    const { api } = await stage.server();
    const sessions = [];
    for (let i = 0; i < SESSIONS; i++) sessions.push(await api.session(['x = 1']));
    await callAgain(api, sessions[0]!.id, stage.count(200, 50));
    const callMs = await callAgain(api, sessions[0]!.id, stage.count(2_000, 200));
    await callTogether(api, sessions, stage.quick ? 200 : 1_000);
    const perSecond = await callTogether(api, sessions, stage.quick ? 1_000 : 5_000);
    return [
      spread('answer', callMs, { p50: 2, p99: 5 }),
      atLeast(`calls of ${SESSIONS} sessions`, perSecond, '/s', 900),
    ];
  },
};

async function callAgain(api: Api, sessionId: string, times: number): Promise<number[]> {
  const wire = await api.wire();
  const request = api.codeBytes(sessionId, '1+1');
  const tookMs: number[] = [];
  for (let i = 0; i < times; i++) {
    const startedAt = performance.now();
    const answer = expected(await wire.send(request), 200);
    tookMs.push(answer.at - startedAt);
    if (!answer.body.includes('"success":true')) throw new Error(answer.body.toString('utf8'));
  }
  wire.close();
  return tookMs;
}

async function callTogether(
  api: Api,
  sessions: readonly { readonly id: string }[],
  forMs: number,
): Promise<number> {
  let count = 0;
  const startedAt = performance.now();
  await Promise.all(
    sessions.map(async ({ id }) => {
      const wire = await api.wire();
      const request = api.codeBytes(id, '1+1');
      while (performance.now() - startedAt < forMs) {
        expected(await wire.send(request), 200);
        count++;
      }
      wire.close();
    }),
  );
  return (count * 1000) / (performance.now() - startedAt);
}
