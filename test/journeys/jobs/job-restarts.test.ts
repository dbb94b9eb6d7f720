/** Jobs of a server that is killed: around a firing, during a run, and for longer than a few instants. */
// tier: whole, because it kills servers
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';

const KILLS = 4;

for (const workers of ['1', '3']) {
  const place = workers === '1' ? 'one process' : 'three workers';

  test(`kills around the firings of ${place} lose no instant and double none`, async () => {
    let server = await startChildServer(test, { TROUPE_WORKERS: workers });
    const notebookId = await notebookOf(server, 'import time; time.sleep(0.3)');
    const job = await server.client.jobs.create({
      target: { notebookId },
      schedule: { everyS: 1 },
      retries: 0,
    });
    const first = Date.parse(job.createdAt) + 1000;
    for (let kill = 0; kill < KILLS; kill++) {
      const before = (await occurrencesOf(server, job.id)).length;
      await eventually(
        'a further instant has passed',
        async () => (await occurrencesOf(server, job.id)).length > before,
      );
      await server.end('SIGKILL');
      server = await server.again();
    }
    const { jobs } = server.client;
    const met = await eventually('an instant after the last start has completed', async () => {
      const all = await occurrencesOf(server, job.id);
      return all.at(-1)?.status === 'completed' ? all : undefined;
    });
    const instants = met.flatMap(({ dueAt, lastDueAt = dueAt }) => secondsBetween(dueAt, lastDueAt));
    assert.deepEqual(
      instants,
      instants.map((_, i) => first + i * 1000),
    );
    const lost = met.filter(({ reason }) => reason?.code === 'server_stopped');
    assert(lost.every(({ status }) => status === 'failed'));
    for (const { runId } of lost)
      if (runId !== null) assert.notEqual((await server.client.runs.get(runId)).status, 'running');
    const { updatedAt: expectedUpdatedAt } = await jobs.get(job.id);
    await jobs.update(job.id, { expectedUpdatedAt, paused: true });
    await eventually('the copies of all attempts are gone', async () => {
      const { items } = await server.client.notebooks.list({ limit: 100 });
      return items.every(({ id }) => id === notebookId);
    });
    await server.end('SIGKILL');
  });
}

test('an occurrence that a killed server has begun is attempted again', async () => {
  const server = await startChildServer(test);
  const notebookId = await notebookOf(server, 'import time; time.sleep(600)');
  const { jobs } = server.client;
  const job = await jobs.create({ target: { notebookId }, schedule: { cron: '0 0 1 1 *' } });
  const { id } = await jobs.run(job.id);
  await eventually('the run has begun', async () => (await occurrencesOf(server, job.id))[0]?.runId !== null);
  await server.end('SIGKILL');
  const second = await server.again();
  const [occurrence] = await occurrencesOf(second, job.id);
  assert.deepEqual(
    [occurrence?.id, occurrence?.status, occurrence?.reason?.code],
    [id, 'backing-off', 'server_stopped'],
  );
  assert.equal((await second.client.jobs.get(job.id)).status, 'backing-off');
  await second.end('SIGKILL');
});

test('an instant that waits for an occurrence survives a kill, and fires once the lost occurrence is over', async () => {
  const server = await startChildServer(test);
  const notebookId = await notebookOf(server, 'import time; time.sleep(600)');
  const job = await server.client.jobs.create({
    target: { notebookId },
    schedule: { everyS: 1 },
    overlap: 'queue',
    retries: 0,
  });
  const [first, waiting] = await eventually('an instant waits for a run', async () => {
    const all = await occurrencesOf(server, job.id);
    return all[0]?.status === 'running' && all[1]?.status === 'queued' ? all : undefined;
  });
  await server.end('SIGKILL');
  const second = await server.again();
  const all = await eventually('the instant that waited has a run', async () => {
    const found = await occurrencesOf(second, job.id);
    return found[1]?.status === 'running' ? found : undefined;
  });
  assert.deepEqual([all[0]?.id, all[1]?.id], [first?.id, waiting?.id]);
  assert.deepEqual([all[0]?.status, all[0]?.reason?.code], ['failed', 'server_stopped']);
  assert.deepEqual(
    all.slice(2).filter(({ status }) => status === 'running' || status === 'due'),
    [],
    'at most one occurrence is in progress',
  );
  await second.end('SIGKILL');
});

test('a job that catches up with all fires each instant of a stop once, one after another', async () => {
  const server = await startChildServer(test);
  const notebookId = await notebookOf(server, '1');
  const job = await server.client.jobs.create({
    target: { notebookId },
    schedule: { everyS: 2 },
    catchUp: 'all',
    overlap: 'queue',
  });
  const first = Date.parse(job.createdAt) + 2000;
  await server.end('SIGKILL');
  await eventually('three instants have passed', () => Date.now() > first + 4000);
  const second = await server.again();
  const all = await eventually('the three missed instants have completed', async () => {
    const found = await occurrencesOf(second, job.id);
    return found.slice(0, 3).filter(({ status }) => status === 'completed').length === 3 ? found : undefined;
  });
  assert.deepEqual(
    all.slice(0, 3).map(({ dueAt }) => Date.parse(dueAt)),
    [first, first + 2000, first + 4000],
  );
  const started = all.slice(0, 3).map(({ startedAt }) => startedAt ?? '');
  assert.deepEqual(started, [...started].sort());
  await second.end('SIGKILL');
});

test('a paused job has no occurrences, and one whose only instant has passed meanwhile has ended', async () => {
  const server = await startChildServer(test);
  const notebookId = await notebookOf(server, '1');
  const at = new Date(Date.now() + 1000).toISOString();
  const job = await server.client.jobs.create({ target: { notebookId }, schedule: { at }, paused: true });
  const { updatedAt: expectedUpdatedAt } = job;
  await eventually('the instant has passed', () => Date.now() > Date.parse(at));
  const resumed = await server.client.jobs.update(job.id, { expectedUpdatedAt, paused: false });
  assert.deepEqual([resumed.status, await occurrencesOf(server, job.id)], ['ended', []]);
  await server.end('SIGKILL');
});

async function notebookOf({ client }: ChildServer, code: string): Promise<string> {
  return (await client.notebooks.create({ serialization: { cells: [{ cell_id: 'c', code }] } })).id;
}

async function occurrencesOf({ client }: ChildServer, jobId: string): Promise<readonly Occurrence[]> {
  return (await client.jobs.occurrences(jobId, { limit: 100 })).items;
}

function secondsBetween(from: string, to: string): number[] {
  const [first, last] = [Date.parse(from), Date.parse(to)];
  return Array.from({ length: (last - first) / 1000 + 1 }, (_, i) => first + i * 1000);
}
