/** Jobs of real servers that are killed around the moments at which a job fires, its run begins and its run ends. */
// tier: whole, because it kills servers and workers many times
// runs alone: it starts many processes, which keep both processors busy
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { FaultPoint } from '#src/base/fault-points.ts';
import { ConnectionError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { eventually, processFact, type WorkerFact, workersOf } from '#test/support/processes.ts';
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
    const instants = all.flatMap(({ dueAt, lastDueAt = dueAt }) => instantsBetween(dueAt, lastDueAt));
    const first = Date.parse(job.createdAt) + EVERY_MS;
    assert.deepEqual(
      instants,
      instants.map((_, i) => first + i * EVERY_MS),
    );
    await requireRuns(server.client, job.id, all);
    await eventually('the copies of all attempts are gone', async () => {
      const { items } = await server.client.notebooks.list({ limit: 100 });
      return items.every(({ id }) => id === notebookId);
    });
  });
}

/** Each occurrence has at most one run, because nothing is attempted again. Each run is over, and says the same as its occurrence. */
async function requireRuns(client: Client, jobId: string, occurrences: readonly Occurrence[]): Promise<void> {
  const byId = new Map(occurrences.map((occurrence) => [occurrence.id, occurrence]));
  const seen = new Set<string>();
  for (let after: string | undefined; ; ) {
    const { items, nextCursor } = await client.runs.list({ limit: 100, after, metadata: `job=${jobId}` });
    for (const { id, status, metadata } of items) {
      const occurrence = byId.get(metadata?.occurrence ?? '');
      assert.equal(occurrence?.runId, id);
      assert.ok(!seen.has(occurrence.id), 'the occurrence has one run');
      seen.add(occurrence.id);
      const isLost = occurrence.reason?.code === 'server_stopped';
      assert.equal(isLost ? 'cancelled' : occurrence.status, status);
    }
    if (nextCursor === null) return;
    after = nextCursor;
  }
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

/** Resolves with undefined when the connection has ended with a worker. */
function unlessCut<T>(answer: Promise<T>): Promise<T | undefined> {
  return answer.catch((error: unknown) => {
    if (error instanceof ConnectionError) return undefined;
    throw error;
  });
}

async function occurrencesOf({ jobs }: Client, jobId: string): Promise<Occurrence[]> {
  const all: Occurrence[] = [];
  for (let after: string | undefined; ; ) {
    const { items, nextCursor } = await jobs.occurrences(jobId, { limit: 100, after });
    all.push(...items);
    if (nextCursor === null) return all;
    after = nextCursor;
  }
}

function isGone({ pid, startedAt }: WorkerFact): boolean {
  return processFact(pid)?.startedAt !== startedAt;
}

function instantsBetween(from: string, to: string): number[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  return Array.from({ length: (last - first) / EVERY_MS + 1 }, (_, i) => first + i * EVERY_MS);
}
