import { MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { spread } from '../measure.ts';
import { cpuMs, processTree } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import type { LaunchedServer } from '../server.ts';
import { expected, type Wire } from '../wire.ts';
import { LOOP } from './cancel.ts';

const unit: UnitOfWork = {
  name: 'session whose kernel is killed',
  count: 20,
  quickCount: 3,
  async prepare(server) {
    const wire = await server.api.wire();
    return {
      async perform(count) {
        for (let i = 0; i < count; i++) await killOnce(server, wire);
      },
    };
  },
};

/** How fast the death of a kernel is noticed. */
export const kernelDeath: Scenario = {
  name: 'kernel-death',
  title: 'SIGKILL of a busy kernel: until its run has failed on the event stream',
  limitS: 60,
  unit,
  async run(stage) {
    const server = await stage.server();
    const wire = await server.api.wire();
    const tookMs: number[] = [];
    const rounds = stage.count(30);
    for (let i = -3; i < rounds; i++) {
      const ms = await killOnce(server, wire);
      if (i >= 0) tookMs.push(ms);
    }
    return [spread('run failed', tookMs, { p50: 8, max: 25 })];
  },
};

/** Opens a session, kills its busy kernel, and closes it. Returns how long it took until the run had failed, in milliseconds. */
async function killOnce({ api, pid }: LaunchedServer, wire: Wire): Promise<number> {
  const before = new Set(processTree(pid));
  const { id } = await api.session([LOOP]);
  const feed = await api.follow(id);
  const begun = feed.until('it has begun');
  expected(await wire.send(api.executeBytes(id, 'c0')), 202);
  await begun;
  const fresh = processTree(pid).filter((one) => !before.has(one));
  const kernel = fresh.toSorted((a, b) => cpuMs([b]) - cpuMs([a]))[0]; // the busy kernel; the others are waiting
  if (kernel === undefined) throw new Error('There is no kernel process.');
  const failed = feed.until(MARK.failed);
  const startedAt = performance.now();
  process.kill(kernel, 'SIGKILL');
  const failedAt = await failed;
  feed.close();
  await api.close(id);
  return failedAt - startedAt;
}
