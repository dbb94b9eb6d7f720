import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../api.ts';
import { runClosedLoop } from '../load/closed-loop.ts';
import { type OpenedConsoles, openConsoles } from '../load/consoles.ts';
import { runRepeatedly } from '../load/run-together.ts';
import { atMost, type Measure, spread, spreadOf } from '../measure.ts';
import { cpuMs, mainThreadMs } from '../processes.ts';
import type { Scenario } from '../scenario.ts';

const CONNECTIONS = 8;
const MAX_RATIO = 1.1;
const KIB = 1024;

/** The cost for other users when operators watch the server in consoles. */
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
    const { api, pid, untilIdle } = await stage.server({ environment: limits });
    for (let i = 0; i < sessions; i++) await api.session(['x = 1']);
    const { id } = await api.session(['1 + 1']);
    const measures: Measure[] = [];
    const alone = { gets: 0, runs: 0 };
    for (const count of [0, 1, 10]) {
      await untilIdle();
      const opened = count === 0 ? undefined : await openConsoles(api.endpoint, count);
      const label = count === 0 ? 'no console' : count === 1 ? '1 console' : `${count} consoles`;
      if (opened !== undefined) {
        const { cpu, bytes, frames, requests } = await watched(opened, pid, stage.quick ? 4_000 : 10_000);
        measures.push(
          atMost(`processor time of the server, nothing to do, ${label}`, cpu, 'ms/s'),
          atMost(`bytes for each console, ${label}`, bytes / count / KIB, 'KiB/s'),
          atMost(`frames for each console, ${label}`, frames / count, '/s'),
          atMost(`requests of each console, ${label}`, requests / count, '/s'),
        );
      }
      const gets = await getsOf(api, id, stage.quick);
      const workedMs = mainThreadMs(pid);
      const runs = await runRepeatedly({ api, id }, stage.count(400, 30));
      const runMs = (mainThreadMs(pid) - workedMs) / runs.length;
      await opened?.close();
      const p99 = { gets: spreadOf(gets).p99, runs: spreadOf(runs).p99 };
      if (count === 0) Object.assign(alone, p99);
      measures.push(
        spread(`GET of a session, ${label}`, gets),
        spread(`run, ${label}`, runs),
        atMost(`processor time of the main thread for each run, ${label}`, runMs, 'ms'),
      );
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

/** Returns the cost of consoles for one second in which the server has no other work. */
async function watched(opened: OpenedConsoles, pid: number, forMs: number) {
  const before = { ...(await opened.traffic()), cpu: cpuMs([pid]), atMs: performance.now() };
  await sleep(forMs);
  const { bytes, frames, requests } = await opened.traffic();
  const cpu = cpuMs([pid]);
  const seconds = (performance.now() - before.atMs) / 1000;
  return {
    cpu: (cpu - before.cpu) / seconds,
    bytes: (bytes - before.bytes) / seconds,
    frames: (frames - before.frames) / seconds,
    requests: (requests - before.requests) / seconds,
  };
}

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
