import { MARK } from '../api.ts';
import { spread } from '../measure.ts';
import { cpuMs, processTree } from '../processes.ts';
import type { Scenario } from '../scenario.ts';
import { expected } from '../wire.ts';

const LOOP = 'print("it has begun")\nwhile True:\n    pass';

/** How fast the death of a kernel is noticed. */
export const kernelDeath: Scenario = {
  name: 'kernel-death',
  title: 'SIGKILL of a busy kernel: until its run has failed on the event stream',
  limitS: 60,
  async run(stage) {
    const { api, pid } = await stage.server();
    const wire = await api.wire();
    const tookMs: number[] = [];
    const rounds = stage.count(30);
    for (let i = -3; i < rounds; i++) {
      const before = new Set(processTree(pid));
      const { id } = await api.session([LOOP]);
      const feed = await api.follow(id);
      const begun = feed.until('it has begun');
      expected(await wire.send(api.executeBytes(id, 'c0')), 202);
      await begun;
      const fresh = processTree(pid).filter((one) => !before.has(one));
      const kernel = fresh.toSorted((a, b) => cpuMs([b]) - cpuMs([a]))[0]; // the busy one; others are waiting
      if (kernel === undefined) throw new Error('There is no kernel process.');
      const failed = feed.until(MARK.failed);
      const startedAt = performance.now();
      process.kill(kernel, 'SIGKILL');
      const failedAt = await failed;
      if (i >= 0) tookMs.push(failedAt - startedAt);
      feed.close();
      await api.close(id);
    }
    return [spread('run failed', tookMs, { p50: 8, max: 25 })];
  },
};
