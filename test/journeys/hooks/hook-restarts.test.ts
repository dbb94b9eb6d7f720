/** Hooks of a server that is killed around the ends of runs and around deliveries. */
// tier: whole, because it kills servers
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';

const KILLS = 4;

for (const workers of ['1', '3']) {
  const place = workers === '1' ? 'one process' : 'three workers';

  test(`kills of ${place} around the ends of runs lose no event, and each event has one id`, async (t) => {
    const receiver = await hookReceiver(t);
    let server = await startChildServer(test, { TROUPE_WORKERS: workers });
    const { id, secret } = await server.client.hooks.create({
      url: receiver.url,
      events: ['run.completed', 'run.failed', 'run.cancelled'],
    });
    const { id: notebookId } = await server.client.notebooks.create({
      serialization: { cells: [{ cell_id: 'c', code: '1' }] },
    });
    const job = await server.client.jobs.create({
      target: { notebookId },
      schedule: { everyS: 1 },
      retries: 0,
    });
    for (let kill = 0; kill < KILLS; kill++) {
      const before = receiver.received.length;
      await eventually('a further event has arrived', () => receiver.received.length > before);
      await server.end('SIGKILL');
      server = await server.again();
    }
    const { jobs, hooks, runs } = server.client;
    const { updatedAt: expectedUpdatedAt } = await jobs.get(job.id);
    await jobs.update(job.id, { expectedUpdatedAt, paused: true });
    await eventually(
      'no occurrence is in progress',
      async () => (await jobs.get(job.id)).status === 'paused',
    );
    await eventually('nothing waits', async () => (await hooks.get(id)).pending === 0);
    const ended = (await runs.list({ limit: 100 })).items.filter(({ status }) => status !== 'running');
    assert(ended.length >= KILLS);
    const told = new Map<unknown, Set<string>>();
    for (const message of receiver.received) {
      message.verify(secret);
      const { runId } = message.payload.data;
      told.set(runId, (told.get(runId) ?? new Set()).add(message.id));
    }
    assert.deepEqual([...told.keys()].sort(), ended.map((run) => run.id).sort());
    assert([...told.values()].every((ids) => ids.size === 1));
    await server.end('SIGKILL');
  });
}

test('a request that a killed server has begun is made again by the next one, at once and with the same id', async (t) => {
  const receiver = await hookReceiver(t, () => undefined);
  const server = await startChildServer(test);
  const { id: hookId } = await server.client.hooks.create({ url: receiver.url, events: ['run.failed'] });
  const { id } = await server.client.hooks.test(hookId);
  await eventually('the request has arrived', () => receiver.received.length === 1);
  await server.end('SIGKILL');
  receiver.answer((response) => response.writeHead(204).end());
  const second = await server.again();
  await eventually('the delivery has arrived', async () => {
    const [delivery] = (await second.client.hooks.deliveries(hookId)).items;
    return delivery?.status === 'delivered';
  });
  assert.deepEqual(
    receiver.received.map((message) => message.id),
    [id, id],
  );
  await second.end('SIGKILL');
});

for (const workers of ['1', '3'])
  test(`with ${workers} workers, a request that is repeated after a kill is the same firing`, async () => {
    let server = await startChildServer(test, { TROUPE_WORKERS: workers });
    const { id: notebookId } = await server.client.notebooks.create({
      serialization: { cells: [{ cell_id: 'c', code: '1' }] },
    });
    const { id: jobId } = await server.client.jobs.create({
      target: { notebookId },
      schedule: { cron: '0 7 1 1 *' },
    });
    const { url, secret } = await server.client.hooksIn.create(jobId);
    const fire = async (id: string) => {
      const headers = { authorization: `Bearer ${secret}`, 'webhook-id': id };
      const answer = await fetch(new URL(url, server.baseUrl), { method: 'POST', headers, body: '{}' });
      assert.equal(answer.status, 202);
      return ((await answer.json()) as Occurrence).id;
    };
    const first = await fire('build-1');
    await server.end('SIGKILL');
    server = await server.again();
    assert.equal(await fire('build-1'), first);
    assert.equal((await server.client.jobs.occurrences(jobId)).items.length, 1);
    await server.end('SIGKILL');
  });
