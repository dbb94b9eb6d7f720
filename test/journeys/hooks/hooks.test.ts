/** Hooks as a client uses them: made, shown, delivered to a receiver that checks signatures, rotated, replayed and deleted. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';

const server = await startServer(test);
const { hooks, jobs, notebooks, runs } = server.client;

const YEARLY = { cron: '0 7 1 1 *' };

test('the end of a run arrives once, signed, with ids and times and without outputs', async (t) => {
  const receiver = await hookReceiver(t);
  const { secret, ...hook } = await hooks.create({
    url: receiver.url,
    events: ['run.completed', 'run.failed'],
  });
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  assert.deepEqual(await hooks.get(hook.id), hook);
  const { runId, jobId, notebookId, occurrenceId } = await runOf('x = 20\nx * 2 + 2');
  const [delivery] = await delivered(hook.id, 1);
  const [message, ...further] = receiver.received;
  assert(message !== undefined && further.length === 0);
  message.verify(secret);
  const run = await runs.get(runId);
  assert.deepEqual(message.payload, {
    type: 'run.completed',
    timestamp: message.payload.timestamp,
    data: {
      workspaceId: server.owner.workspaceId,
      runId,
      notebookId,
      agentSessionId: null,
      jobId,
      occurrenceId,
      status: 'completed',
      errorCode: null,
      createdAt: run.createdAt,
      finishedAt: run.finishedAt,
      link: `/api/v3/runs/${runId}`,
    },
  });
  assert.deepEqual(
    [message.id, delivery?.payload, delivery?.attempts, delivery?.responseStatus, delivery?.reason],
    [delivery?.id, message.body, 1, 204, null],
  );
  assert.equal((await hooks.get(hook.id)).status, 'idle');
  await hooks.delete(hook.id);
});

test('a paused hook gets no events and sends no tests', async (t) => {
  const receiver = await hookReceiver(t);
  const hook = await hooks.create({ url: receiver.url, events: ['run.completed'], paused: true });
  assert.equal(await refusalOf(hooks.test(hook.id)), '409 hook_paused');
  await runOf('1');
  const resumed = await hooks.update(hook.id, { expectedUpdatedAt: hook.updatedAt, paused: false });
  assert.deepEqual([resumed.paused, resumed.status], [false, 'idle']);
  const { id } = await hooks.test(hook.id);
  const all = await delivered(hook.id, 1);
  assert.deepEqual(
    all.map(({ id, event }) => [id, event]),
    [[id, 'hook.test']],
  );
  assert.equal(receiver.received.length, 1);
  await hooks.delete(hook.id);
});

async function delivered(hookId: string, count: number): Promise<readonly Delivery[]> {
  return eventually(`${count} deliveries have ended`, async () => {
    const { items } = await hooks.deliveries(hookId);
    return items.filter(({ status }) => status !== 'pending').length >= count ? items : undefined;
  });
}

/** Runs a new notebook by a job, and resolves with its ids once the run has ended. */
async function runOf(code: string) {
  const { id: notebookId } = await notebooks.create({ serialization: { cells: [{ cell_id: 'c', code }] } });
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY, retries: 0 });
  const { id: occurrenceId } = await jobs.run(job.id);
  const runId = await eventually('the run has ended', async () => {
    const [occurrence] = (await jobs.occurrences(job.id)).items;
    return occurrence?.finishedAt == null ? undefined : (occurrence.runId ?? '');
  });
  return { jobId: job.id, notebookId, occurrenceId, runId };
}
