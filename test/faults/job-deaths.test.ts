/** Jobs of real servers that are killed around the moments at which a job fires, its run begins and its run ends. */
// tier: whole, because it kills servers and workers many times
// runs alone: it starts many processes, which keep both processors busy
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { FaultPoint } from '#src/base/fault-points.ts';
import type { Client } from '#src/contract/client/client.ts';
import { eventually, workersOf } from '#test/support/processes.ts';
import { isGone, occurrencesOf, requireEachInstant, requireRuns, unlessCut } from './job-facts.ts';
import { Victim } from './victim.ts';

/** Of each server. */
const KILLS = Number(process.env.TROUPE_TEST_KILLS ?? 4);
const POINTS: readonly FaultPoint[] = ['job.fired', 'job.running', 'job.ended', 'turn.durable'];
const EVERY_MS = 1000;

for (const workers of [1, 3]) {
  test(`${KILLS} kills around the moments of jobs of ${workers === 1 ? 'one process' : 'three workers'} lose no instant and double none`, async (t) => {
    const folders = ['data', 'points'].map((name) => mkdtempSync(join(tmpdir(), `troupe-job-${name}-`)));
    const [dataDir = '', points = ''] = folders;
    t.after(() => {
      for (const folder of folders) rmSync(folder, { recursive: true, force: true });
    });
    const start = () =>
      Victim.start(dataDir, undefined, { TROUPE_WORKERS: String(workers), FAULT_FOLDER: points });
    let server = await start();
    t.after(async () => {
      server.end('SIGKILL');
      await server.over();
    });
    const { id: notebookId } = await server.client.notebooks.create({
      serialization: { cells: [{ cell_id: 'c', code: '1 + 1' }] },
    });
    const schedule = { everyS: EVERY_MS / 1000 };
    const job = await server.client.jobs.create({ target: { notebookId }, schedule, retries: 0 });
    const kills: Record<string, number> = {};
    for (let kill = 0; kill < KILLS; kill++) {
      const point = POINTS[kill % POINTS.length]!;
      // A success between the failures, five of which would pause the job.
      if (kill % POINTS.length === 0) await eventuallyCompleted(server.client, job.id);
      const alive = workersOf(server.pid);
      const isDead = () => server.isOver || alive.some(isGone);
      writeFileSync(join(points, point), '');
      await eventually(`somebody has died at ${point}`, isDead);
      rmSync(join(points, point), { force: true });
      kills[point] = (kills[point] ?? 0) + 1;
      if (workers === 1) {
        await server.over();
        server = await start();
      }
      await eventually('all workers serve', async () => {
        const shown = await unlessCut(server.client.server());
        return shown !== undefined && (workers === 1 || shown.workers?.length === workers);
      });
    }
    t.diagnostic(JSON.stringify(kills));
    await eventuallyCompleted(server.client, job.id);
    const { updatedAt: expectedUpdatedAt } = await server.client.jobs.get(job.id);
    await server.client.jobs.update(job.id, { expectedUpdatedAt, paused: true });
    const all = await eventually('the last occurrence is over', async () => {
      const listed = await occurrencesOf(server.client, job.id);
      return listed.every(({ finishedAt }) => finishedAt !== null) ? listed : undefined;
    });
    requireEachInstant(job, all, EVERY_MS);
    await requireRuns(server.client, job.id, all);
    await eventually('the copies of all attempts are gone', async () => {
      const { items } = await server.client.notebooks.list({ limit: 100 });
      return items.every(({ id }) => id === notebookId);
    });
  });
}

async function eventuallyCompleted(client: Client, jobId: string): Promise<void> {
  const before = await eventually('the occurrences are listed', () =>
    unlessCut(occurrencesOf(client, jobId)),
  );
  await eventually('an instant has completed', async () => {
    const all = (await unlessCut(occurrencesOf(client, jobId))) ?? [];
    return all.slice(before.length).some(({ status }) => status === 'completed');
  });
}
