import type { UnitOfWork } from '../counting/unit.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { sendTogether } from '../load/send-together.ts';
import { atLeast, atMost, median, spread } from '../measure.ts';
import { mainThreadMs } from '../processes.ts';
import type { Scenario } from '../scenario.ts';

const WRITERS = 64;

const CREATE = { serialization: { cells: [{ cell_id: 'a', code: 'x = 1' }] } };

const unit: UnitOfWork = {
  name: 'create, of 16 at once',
  count: 3_200,
  async prepare({ api }) {
    const request = api.bytes('POST', '/api/v3/notebooks', CREATE);
    return { perform: (count) => sendTogether(api, request, count, 201) };
  },
};

/** How fast notebooks and environments are created. */
export const creates: Scenario = {
  name: 'creates',
  title: `Creating notebooks and environments, each on disk before the response: ${WRITERS} writers, and one`,
  limitS: 90,
  unit,
  async run(stage) {
    const { api, pid } = await stage.server();
    const { port } = api.endpoint;
    const request = api.bytes('POST', '/api/v3/notebooks', CREATE);
    const environment = api.bytes('POST', '/api/v3/execution-environments', {});
    const forMs = stage.quick ? 500 : 1_500;
    const load = { port, request, warmUpMs: 500, forMs, expect: 201 };
    const rates: number[] = [];
    const together: number[] = [];
    const environmentRates: number[] = [];
    const environments: number[] = [];
    const alone: number[] = [];
    const cpuUs: number[] = [];
    for (let round = 0; round < stage.count(5, 2); round++) {
      let before = 0;
      const many = await runClosedLoop({ ...load, connections: WRITERS }, () => {
        before = mainThreadMs(pid);
      });
      cpuUs.push(((mainThreadMs(pid) - before) * 1000) / many.latenciesMs.length);
      rates.push(many.perSecond);
      together.push(...many.latenciesMs);
      const others = await runClosedLoop({ ...load, request: environment, connections: WRITERS });
      environmentRates.push(others.perSecond);
      environments.push(...others.latenciesMs);
      alone.push(...(await runClosedLoop({ ...load, connections: 1 })).latenciesMs);
    }
    return [
      atLeast(`${WRITERS} writers`, median(rates), '/s', 20_000),
      spread(`${WRITERS} writers, answer`, together, { p99: 15 }),
      atMost(`${WRITERS} writers, CPU of the server for one`, median(cpuUs), 'µs'),
      atLeast(`${WRITERS} writers, environments`, median(environmentRates), '/s'),
      spread(`${WRITERS} writers, answer to an environment`, environments),
      spread('one writer, answer', alone, { p50: 0.8 }),
    ];
  },
};
