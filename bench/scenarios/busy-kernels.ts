import { type ClosedLoop, type LoopResult, runClosedLoop } from '../load/closed-loop.ts';
import { runRepeatedly } from '../load/run-together.ts';
import { atLeast, atMost, type Measure, median, spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const KERNELS = 4;
const CONNECTIONS = 16;

/** How much work the server still does while notebooks need more processors than there are. */
export const busyKernels: Scenario = {
  name: 'busy-kernels',
  title: `GETs of a notebook and runs of one session, while no other kernel computes, and while ${KERNELS} do without a pause`,
  limitS: 120,
  async run(stage) {
    const { api } = await stage.server();
    const { id } = await api.session(['1 + 1']);
    const gets: ClosedLoop = {
      port: api.endpoint.port,
      request: api.bytes('GET', `/api/v3/notebooks/${id}`),
      connections: CONNECTIONS,
      warmUpMs: 300,
      forMs: stage.quick ? 1_000 : 2_000,
      expect: 200,
    };
    const measures: Measure[] = [];
    const rates: number[] = [];
    for (const computing of [0, KERNELS]) {
      for (let i = 0; i < computing; i++) {
        const busy = await api.session(['while True:\n    pass']);
        const wire = await api.wire();
        expected(await wire.send(api.executeBytes(busy.id, 'c0')), 202);
        wire.close();
      }
      const label = computing === 0 ? 'nothing computes' : `${computing} kernels compute`;
      const rounds: LoopResult[] = [];
      const tookMs: number[] = [];
      // Both are measured in turns, because the system sometimes moves computing processes from one processor to the
      // other.
      for (let round = 0; round < stage.count(8, 2); round++) {
        rounds.push(await runClosedLoop(gets));
        tookMs.push(...(await runRepeatedly({ api, id }, stage.count(60, 15))));
      }
      const perSecond = median(rounds.map((one) => one.perSecond));
      const latenciesMs = rounds.flatMap((one) => [...one.latenciesMs]);
      rates.push(perSecond);
      measures.push(
        atLeast(`GETs, ${label}`, perSecond, '/s'),
        spread(`GET, ${label}`, latenciesMs),
        spread(`run, ${label}`, tookMs),
      );
    }
    return [...measures, atMost('GETs, nothing computes to kernels compute', rates[0]! / rates[1]!, '×')];
  },
};
