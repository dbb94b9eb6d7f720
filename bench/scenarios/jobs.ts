import { setTimeout as sleep } from 'node:timers/promises';
import type { Api } from '../api.ts';
import { atMost, type Measure, spread } from '../measure.ts';
import { cpuMs, processTree, proportionalBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { decoded, expected } from '../wire.ts';

const MIB = 1024 * 1024;
/** V8 compacts its heap some eight seconds after the last work, which counts as a part of the creation of the jobs. */
const REST_MS = 12_000;
/** How long before their instants jobs are created, so that the last one exists in time. */
const LEAD_MS = 2000;

interface Occurrence {
  readonly runId: string | null;
  readonly finishedAt: string | null;
}

/** The cost of jobs at rest, the time from an instant to its run, and many jobs that are due at once. */
export const jobs: Scenario = {
  name: 'jobs',
  title:
    '10,000 jobs at rest; from an instant until its run is on disk; 1,000 jobs that are due within one second',
  limitS: 1200,
  run: async (stage) => [...(await atRest(stage)), ...(await oneByOne(stage)), ...(await allAtOnce(stage))],
};

async function atRest(stage: Stage): Promise<Measure[]> {
  const { api, pid } = await stage.server();
  const count = stage.count(10_000, 200);
  const notebookId = await api.notebook(['1']);
  const memory = () => proportionalBytes([pid]) / MIB;
  const before = memory();
  for (let i = 0; i < count; i++) await create(api, notebookId, { cron: '0 7 1 1 *' });
  if (!stage.quick) await sleep(REST_MS);
  const tree = processTree(pid);
  const seconds = stage.seconds(60, 3);
  const cpuBefore = cpuMs(tree);
  await sleep(seconds * 1000);
  const cpu = (cpuMs(tree) - cpuBefore) / seconds;
  return [
    atMost(`CPU with ${count} jobs at rest`, cpu, 'ms/s', 0.1),
    atMost(`memory of ${count} jobs at rest`, memory() - before, 'MiB', 20),
  ];
}

async function oneByOne(stage: Stage): Promise<Measure[]> {
  const { api } = await stage.server();
  const notebookId = await api.notebook(['1']);
  const wire = await api.wire();
  const tookMs: number[] = [];
  for (let i = stage.count(100); i > 0; i--) {
    const dueMs = Date.now() + 500;
    const jobId = await create(api, notebookId, { at: new Date(dueMs).toISOString() });
    const read = api.bytes('GET', `/api/v3/jobs/${jobId}/occurrences`);
    await sleep(dueMs - Date.now() - 20);
    for (;;) {
      // The answer is sent once everything in it is on disk.
      const { items } = decoded<{ items: Occurrence[] }>(expected(await wire.send(read), 200));
      if (items[0]?.runId != null) break;
      await sleep(1);
    }
    tookMs.push(Date.now() - dueMs);
    await finished(api, [jobId]);
  }
  wire.close();
  return [spread('from an instant until its run is on disk', tookMs, { p50: 20, p99: 250 })];
}

async function allAtOnce(stage: Stage): Promise<Measure[]> {
  const { api } = await stage.server();
  const count = stage.count(1000, 20);
  const notebookId = await api.notebook(['1']);
  const usual = await gets(api, notebookId, sleep(stage.quick ? 500 : 5000));
  // The time that the creation takes is measured, so that all jobs exist before the first is due.
  const startedAt = performance.now();
  await create(api, notebookId, { cron: '0 7 1 1 *' });
  const lead = LEAD_MS + (performance.now() - startedAt) * count * 2;
  const firstMs = Date.now() + lead;
  const ids: string[] = [];
  for (let i = 0; i < count; i++)
    ids.push(await create(api, notebookId, { at: new Date(firstMs + (i * 1000) / count).toISOString() }));
  await sleep(Math.max(0, firstMs - Date.now()));
  const during = await gets(api, notebookId, finished(api, ids));
  const doneS = (Date.now() - firstMs) / 1000;
  return [
    spread('GET of a notebook, usually', usual),
    spread(`GET of a notebook while ${count} jobs are due`, during),
    atMost(`${count} jobs until all have ended, for one job`, (doneS * 1000) / count, 'ms'),
  ];
}

/** Reads a notebook again and again until `end`. Returns how long each request took, in milliseconds. */
async function gets(api: Api, notebookId: string, end: Promise<unknown>): Promise<number[]> {
  const wire = await api.wire();
  const read = api.bytes('GET', `/api/v3/notebooks/${notebookId}`);
  const tookMs: number[] = [];
  let isOver = false;
  const ended = end.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const startedAt = performance.now();
    expected(await wire.send(read), 200);
    tookMs.push(performance.now() - startedAt);
    await sleep(2);
  }
  await ended;
  wire.close();
  return tookMs;
}

/** Resolves once each job has exactly one occurrence, which is over. Rejects when a job has fired more than once. */
async function finished(api: Api, jobIds: readonly string[]): Promise<void> {
  for (const id of jobIds)
    for (;;) {
      const path = `/api/v3/jobs/${id}/occurrences`;
      const { items } = await api.call<{ items: Occurrence[] }>('GET', path);
      if (items.length > 1) throw new Error(`The job ${id} has fired ${items.length} times.`);
      if (items[0]?.finishedAt != null) break;
      await sleep(50);
    }
}

async function create(api: Api, notebookId: string, schedule: object): Promise<string> {
  const body = { target: { notebookId }, schedule };
  return (await api.call<{ id: string }>('POST', '/api/v3/jobs', body)).id;
}
