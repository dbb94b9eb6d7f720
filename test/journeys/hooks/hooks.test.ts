/** Hooks as a client uses them: made, shown, delivered to a receiver that checks signatures, rotated, replayed and deleted. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Delivery, NewHook } from '#src/contract/wire/hook.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';

const server = await startServer(test);
const { executionEnvironments, executions, hooks, jobs, notebooks, notebookSessions, runs } = server.client;

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

test('a filter passes the runs of a job, of its notebook and with given metadata, and metadata cannot feign a job', async (t) => {
  const receiver = await hookReceiver(t);
  const { id: notebookId } = await notebooks.create({
    serialization: { cells: [{ cell_id: 'c', code: '1' }] },
  });
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY, metadata: { team: 'sales' } });
  const hookOf = async (filter: NewHook['filter']) =>
    (await hooks.create({ url: receiver.url, events: ['run.completed'], ...(filter && { filter }) })).id;
  const ids = await Promise.all(
    [{ jobId: job.id }, { notebookId }, { metadata: { team: 'sales' } }, undefined].map(hookOf),
  );
  const others = await Promise.all(
    [{ jobId: 'job_other' }, { notebookId: 'nb_other' }, { metadata: { team: 'ops' } }].map(hookOf),
  );
  const { id: occurrenceId } = await jobs.run(job.id);
  for (const id of ids) await delivered(id, 1);
  const { environmentId } = await executionEnvironments.create();
  await notebookSessions.open({ notebookId, environmentId });
  await eventually(
    'the session is ready',
    async () => (await notebookSessions.get(notebookId)).status === 'ready',
  );
  const feigned = { job: job.id, occurrence: occurrenceId };
  const { runId } = await executions.submit(notebookId, { type: 'all', metadata: feigned });
  await delivered(ids[1] ?? '', 2);
  await delivered(ids[3] ?? '', 2);
  const counts = await Promise.all(
    [...ids, ...others].map(async (id) => (await hooks.deliveries(id)).items.length),
  );
  assert.deepEqual(counts, [1, 2, 1, 2, 0, 0, 0]);
  const last = receiver.received.filter(({ payload }) => payload.data.runId === runId);
  assert.deepEqual(
    last.map(({ payload: { data } }) => [data.notebookId, data.jobId]),
    [
      [notebookId, null],
      [notebookId, null],
    ],
  );
  for (const id of [...ids, ...others]) await hooks.delete(id);
});

test('a hook hears that a job has failed, that an instant was skipped, and that a job was paused', async (t) => {
  const receiver = await hookReceiver(t);
  const events = ['job.failed', 'job.skipped', 'job.paused', 'run.failed'] as const;
  const hook = await hooks.create({ url: receiver.url, events: [...events] });
  const { jobId, notebookId, runId } = await runOf('1 / 0');
  const { updatedAt: expectedUpdatedAt } = await jobs.get(jobId);
  await jobs.update(jobId, { expectedUpdatedAt, paused: true });
  await notebooks.delete(notebookId);
  const job = await jobs.get(jobId);
  await jobs.update(jobId, {
    expectedUpdatedAt: job.updatedAt,
    paused: false,
    schedule: { everyS: 1 },
  });
  const deliveries = await delivered(hook.id, 5);
  assert.deepEqual(deliveries.map(({ event }) => event).sort(), [
    'job.failed',
    'job.paused',
    'job.paused',
    'job.skipped',
    'run.failed',
  ]);
  const dataOf = (type: string) =>
    receiver.received.find(({ payload }) => payload.type === type)?.payload.data;
  const { occurrenceId, ...failed } = dataOf('job.failed') ?? {};
  assert.match(String(occurrenceId), /^occ_/);
  assert.deepEqual([failed.jobId, failed.notebookId, failed.runId], [jobId, notebookId, runId]);
  assert.deepEqual([dataOf('run.failed')?.errorCode, dataOf('run.failed')?.jobId], ['cell_failed', jobId]);
  assert.equal(dataOf('job.skipped')?.reason, 'notebook_deleted');
  await hooks.delete(hook.id);
});

test('a hook hears that a session has failed, with the reason, and a hook of another notebook does not', async (t) => {
  const receiver = await hookReceiver(t);
  const create = async (filter: NewHook['filter'] = {}) =>
    (await hooks.create({ url: receiver.url, events: ['session.failed'], filter })).id;
  const notebook = await openNotebook(server, { dies: 'import os\nos._exit(6)' });
  const ids = [await create(), await create({ notebookId: notebook.id })];
  const other = await create({ notebookId: 'nb_other' });
  for (let death = 1; death <= 3; death++) {
    assert.equal((await notebook.run(['dies'])).error?.code, 'kernel_exited');
    await server.client.notebookSessions.waitUntilReady(notebook.id);
  }
  assert.equal((await notebook.record()).status, 'failed');
  for (const id of ids) await delivered(id, 1);
  assert.deepEqual((await hooks.deliveries(other)).items, []);
  assert.equal(receiver.received.length, 2);
  for (const { payload } of receiver.received)
    assert.deepEqual(payload, {
      type: 'session.failed',
      timestamp: payload.timestamp,
      data: {
        workspaceId: server.owner.workspaceId,
        notebookId: notebook.id,
        status: 'failed',
        reason: 'kernel_exited',
        failedAt: payload.timestamp,
        link: `/api/v3/notebook-sessions/${notebook.id}`,
      },
    });
  await notebook.close();
  for (const id of [...ids, other]) await hooks.delete(id);
});

test('after a rotation both secrets sign, after two the first one no longer does, and no answer has an old one', async (t) => {
  const receiver = await hookReceiver(t);
  const { id, secret: first } = await hooks.create({ url: receiver.url, events: ['run.failed'] });
  const { secret: second, olderSecretUntil } = await hooks.rotate(id);
  assert(Date.parse(olderSecretUntil ?? '') > Date.now());
  await hooks.test(id);
  await delivered(id, 1);
  for (const secret of [first, second]) receiver.received[0]?.verify(secret);
  const { secret: third } = await hooks.rotate(id);
  await hooks.test(id);
  await delivered(id, 2);
  for (const secret of [second, third]) receiver.received[1]?.verify(secret);
  assert.throws(() => receiver.received[1]?.verify(first), /No matching signature/);
  const shown = JSON.stringify([
    await hooks.get(id),
    await hooks.list(),
    await hooks.deliveries(id),
    server.log,
  ]);
  for (const secret of [first, second, third])
    assert(!shown.includes(secret.slice('whsec_'.length, 'whsec_'.length + 20)));
  await hooks.delete(id);
});

test('the secrets of hooks are sealed again when the keyring is rotated, and sign as before', async (t) => {
  const receiver = await hookReceiver(t);
  const { id, secret } = await hooks.create({ url: receiver.url, events: ['run.failed'] });
  const before = await server.client.keys.list();
  await server.client.keys.add();
  await eventually('the older key seals nothing', async () => {
    const { items } = await server.client.keys.rotate();
    return before.items.every(({ id: old }) => (items.find((key) => key.id === old)?.sealed ?? 0) === 0);
  });
  await hooks.test(id);
  await delivered(id, 1);
  receiver.received[0]?.verify(secret);
  await hooks.delete(id);
});

test('a workspace has at most 100 hooks', async () => {
  const { items } = await hooks.list({ limit: 100 });
  const hook = { url: 'https://receiver.example/hook', events: ['run.failed'] as const, paused: true };
  const ids: string[] = [];
  for (let count = items.length; count < 100; count++)
    ids.push((await hooks.create({ ...hook, events: ['run.failed'] })).id);
  assert.equal(await refusalOf(hooks.create({ ...hook, events: ['run.failed'] })), '429 quota_exceeded');
  const all = await hooks.list({ limit: 60 });
  const rest = await hooks.list({ limit: 60, after: all.nextCursor ?? '' });
  assert.deepEqual([all.items.length + rest.items.length, rest.nextCursor], [100, null]);
  for (const id of ids) await hooks.delete(id);
  const { id } = await hooks.create({ ...hook, events: ['run.failed'] });
  await hooks.delete(id);
});

test('editors make hooks, only their owner and owners of the workspace change them, and viewers see none', async () => {
  const [ada, bob, eve] = await Promise.all([
    addMember(server, 'ada-of-hooks', 'editor'),
    addMember(server, 'bob-of-hooks', 'editor'),
    addMember(server, 'eve-of-hooks', 'viewer'),
  ]);
  const { secret: _, ...hook } = await ada.client.hooks.create({
    url: 'https://receiver.example/hook',
    events: ['run.failed'],
    paused: true,
  });
  assert.deepEqual(await bob.client.hooks.get(hook.id), hook);
  const { id, updatedAt: expectedUpdatedAt } = hook;
  const asBob = bob.client.hooks;
  for (const refused of [
    () => asBob.update(id, { expectedUpdatedAt, name: 'mine' }),
    () => asBob.rotate(id),
    () => asBob.test(id),
    () => asBob.delete(id),
    () => eve.client.hooks.list(),
    () => eve.client.hooks.get(id),
  ])
    assert.equal(await refusalOf(refused()), '403 role_too_low');
  const stranger = server.clientOf(await server.stranger());
  assert.equal(await refusalOf(stranger.hooks.get(id)), '404 not_found');
  const changed = await hooks.update(id, { expectedUpdatedAt, name: 'of the owner' });
  assert.equal(changed.name, 'of the owner');
  assert.equal(await refusalOf(hooks.update(id, { expectedUpdatedAt, name: 'late' })), '409 stale_update');
  await hooks.delete(id);
  assert.equal(await refusalOf(hooks.get(id)), '404 not_found');
});

test('a hook pauses itself when its owner has become a viewer or has left, and says so', async (t) => {
  const receiver = await hookReceiver(t);
  for (const code of ['role_too_low', 'owner_left']) {
    const userId = `owner-${code.replaceAll('_', '-')}`;
    const member = await addMember(server, userId, 'editor');
    const { id } = await member.client.hooks.create({ url: receiver.url, events: ['run.completed'] });
    if (code === 'owner_left') await server.client.members.delete(userId);
    else await server.client.members.update(userId, { role: 'viewer' });
    await runOf('1');
    const paused = await eventually('the hook is paused', async () => {
      const hook = await hooks.get(id);
      return hook.paused ? hook : undefined;
    });
    assert.equal(paused.reason?.code, code);
    await hooks.delete(id);
  }
  assert.equal(receiver.received.length, 0);
});

test('a URL that is none, has a user, or no host is refused in words', async () => {
  for (const url of [
    'https://',
    'https://ada:secret@receiver.example/',
    'http://receiver.example:0/',
    'http://[::1',
  ])
    assert.equal(await refusalOf(hooks.create({ url, events: ['run.failed'] })), '400 invalid_request', url);
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
