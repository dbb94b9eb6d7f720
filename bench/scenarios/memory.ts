import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, median } from '../measure.ts';
import { cpuMs, processTree, proportionalBytes } from '../processes.ts';
import type { Scenario } from '../scenario.ts';

const MIB = 1024 * 1024;
const SESSIONS = 10;
/**
 * V8 compacts its heap once, some eight seconds after the last work. This work counts as a part of the start,
 * and not as idling.
 */
const REST_MS = 12_000;

/** The cost of an idle server. */
export const memory: Scenario = {
  name: 'memory',
  title: `Memory (Pss) and CPU of an idle server, empty and with ${SESSIONS} idle sessions`,
  limitS: 180,
  async run(stage) {
    const bare = await stage.server({ environment: { TROUPE_PRELOAD: 'false' } });
    const bareMiB = proportionalBytes(processTree(bare.pid)) / MIB;
    await bare.end();
    const { api, pid, untilIdle } = await stage.server();
    const memoryOf = (pids: readonly number[]) => proportionalBytes(pids) / MIB;
    const emptyTree = processTree(pid);
    const empty = memoryOf(emptyTree);
    const emptyServer = memoryOf([pid]);
    if (!stage.quick) await sleep(REST_MS);
    const idle = await idleCpu(pid, stage.quick ? 3 : 15);
    for (let i = 0; i < SESSIONS; i++) await api.session(['import marimo as mo', 'x = 1', 'x + 1']);
    await untilIdle();
    const kernels = processTree(pid).filter((one) => !emptyTree.includes(one));
    const full = memoryOf(processTree(pid));
    const fullServer = memoryOf([pid]);
    if (!stage.quick) await sleep(REST_MS);
    const idleFull = await idleCpu(pid, stage.quick ? 3 : 15);
    return [
      atMost('empty, nothing preloaded', bareMiB, 'MiB', 130),
      atMost('empty', empty, 'MiB'),
      atMost('empty, the server process', emptyServer, 'MiB'),
      atMost('one session', (full - empty) / SESSIONS, 'MiB', 18),
      atMost('one session, its kernel', median(kernels.map((one) => memoryOf([one]))), 'MiB'),
      atMost('one session, in the server process', (fullServer - emptyServer) / SESSIONS, 'MiB', 0.3),
      atMost('idle CPU, empty', idle, 'ms/s', 0.1),
      atMost(`idle CPU, ${SESSIONS} sessions`, idleFull, 'ms/s'),
    ];
  },
};

async function idleCpu(pid: number, seconds: number): Promise<number> {
  const tree = processTree(pid);
  const before = cpuMs(tree);
  await sleep(seconds * 1000);
  return (cpuMs(tree) - before) / seconds;
}
