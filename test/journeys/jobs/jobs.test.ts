/** Jobs as a client uses them: made, shown, changed, fired by their schedule or by a person, and deleted. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Job, NewJob, Occurrence } from '#src/contract/wire/job.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { jobs, notebooks, notebookSessions, executionEnvironments, runs } = server.client;

const YEARLY = { cron: '0 7 1 1 *' };

test('a fired job runs the notebook as it is, keeps the run, and leaves nothing else behind', async () => {
  const notebookId = await notebookOf('x = 20', 'x * 2 + 2');
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY });
  const fired = await jobs.run(job.id);
  assert.deepEqual([fired.status, fired.trigger, fired.attempts], ['due', 'person', 1]);
  const occurrence = await ended(job.id, fired.id);
  assert.equal(occurrence.status, 'completed');
  const run = await runs.get(occurrence.runId ?? '');
  assert.equal(run.status, 'completed');
  assert.deepEqual(run.metadata, { job: job.id, occurrence: fired.id });
  assert.match(JSON.stringify(run.output), /42/);
  await eventually('the copy and its environment are gone', async () => {
    const { items } = await notebooks.list();
    const open = await executionEnvironments.list({ status: 'open' });
    const sessions = await notebookSessions.list({ status: 'open' });
    return (
      items.every(({ metadata }) => metadata?.job !== job.id) &&
      open.items.length + sessions.items.length === 0
    );
  });
  assert.equal((await runs.get(run.id)).id, run.id, 'the run is kept');
  await jobs.delete(job.id);
});

test('a job shows its last occurrence that is over, also while a later one is in progress', async () => {
  const notebookId = await notebookOf('import os, time', 'time.sleep(600) if os.path.exists("wait") else 1');
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY });
  assert.equal(job.lastOccurrence, null);
  const first = await ended(job.id, (await jobs.run(job.id)).id);
  assert.deepEqual((await jobs.get(job.id)).lastOccurrence, first);
  await server.client.files.put('wait', Buffer.from(''));
  const second = await jobs.run(job.id);
  const running = await eventually('the second run has begun', async () =>
    (await occurrencesOf(job.id)).find(({ status }) => status === 'running'),
  );
  const { currentOccurrenceId, lastOccurrence } = await jobs.get(job.id);
  assert.deepEqual([currentOccurrenceId, lastOccurrence], [second.id, first]);
  await runs.cancel(running.runId ?? '');
  const cancelled = await ended(job.id, second.id);
  assert.deepEqual((await jobs.list({ notebookId })).items[0]?.lastOccurrence, cancelled);
  await server.client.files.delete('wait');
  await jobs.delete(job.id);
});

test('the list of jobs has only the jobs of one notebook if the query names it', async () => {
  const [one, other] = [await notebookOf('1'), await notebookOf('2')];
  const made = [];
  for (const notebookId of [one, other, one])
    made.push((await jobs.create({ target: { notebookId }, schedule: YEARLY })).id);
  const idsOf = async (notebookId: string) => (await jobs.list({ notebookId })).items.map(({ id }) => id);
  assert.deepEqual(await idsOf(one), [made[0], made[2]]);
  assert.deepEqual(await idsOf(other), [made[1]]);
  assert.deepEqual(await idsOf('nb_01j0000000000000000000'), []);
  for (const id of made) await jobs.delete(id);
});

test('a schedule fires a job at each of its instants, and each instant has one occurrence', async () => {
  const job = await jobs.create({ target: { notebookId: await notebookOf('1') }, schedule: { everyS: 1 } });
  await eventually('three instants have passed', async () => (await occurrencesOf(job.id)).length >= 3);
  await pause(job.id);
  const occurrences = await eventually('the last occurrence is over', async () => {
    const all = await occurrencesOf(job.id);
    return all.every(({ finishedAt }) => finishedAt !== null) ? all : undefined;
  });
  const times = occurrences.map(({ dueAt }) => Date.parse(dueAt));
  const first = Date.parse(job.createdAt) + 1000;
  assert.deepEqual(
    times,
    times.map((_, i) => first + i * 1000),
    'no instant is missing, and none has come twice',
  );
  assert.equal(occurrences[0]?.status, 'completed');
  for (const { status, reason } of occurrences)
    assert(status === 'completed' || (status === 'skipped' && reason?.code === 'overlap'), status);
  await jobs.delete(job.id);
});

test('jobs that are due at once each fire once, and at most eight of them work at a time', async () => {
  const notebookId = await notebookOf('1');
  const at = new Date(Date.now() + 2000).toISOString();
  const made: Job[] = [];
  for (let i = 0; i < 12; i++) made.push(await jobs.create({ target: { notebookId }, schedule: { at } }));
  let atOnce = 0;
  const all = await eventually('all jobs have fired', async () => {
    const { items } = await notebookSessions.list({ status: 'open', limit: 100 });
    atOnce = Math.max(atOnce, items.length);
    const occurrences = [];
    for (const { id } of made) occurrences.push(await occurrencesOf(id));
    return occurrences.every(([first]) => first?.finishedAt != null) ? occurrences : undefined;
  });
  assert.deepEqual(
    all.map((occurrences) => occurrences.map(({ status }) => status)),
    made.map(() => ['completed']),
  );
  assert(atOnce <= 8, `${atOnce} sessions were open at once`);
  for (const { id } of made) await jobs.delete(id);
});

test('one instant fires once, and the job has then ended', async () => {
  const at = new Date(Date.now() + 500).toISOString();
  const job = await jobs.create({ target: { notebookId: await notebookOf('1') }, schedule: { at } });
  assert.deepEqual(job.next, [at]);
  const [occurrence] = await eventually('the job has fired', async () => {
    const all = await occurrencesOf(job.id);
    return all.length > 0 && all[0]?.finishedAt != null ? all : undefined;
  });
  assert.deepEqual([occurrence?.dueAt, occurrence?.status], [at, 'completed']);
  const { status, next } = await jobs.get(job.id);
  assert.deepEqual([status, next], ['ended', []]);
  await jobs.delete(job.id);
});

test('a job runs only the cells and with the arguments that it names', async () => {
  const notebookId = await notebookOf('import marimo as mo', 'mo.cli_args().get("month")', '1 / 0');
  const target = { notebookId, cells: ['c1'] };
  const job = await jobs.create({ target, schedule: YEARLY, arguments: ['--month=march'] });
  const occurrence = await ended(job.id, (await jobs.run(job.id)).id);
  assert.equal(occurrence.status, 'completed');
  assert.match(JSON.stringify((await runs.get(occurrence.runId ?? '')).output), /march/);
  await jobs.delete(job.id);
});

test('five failures in a row pause a job, and a person who resumes it begins anew', async () => {
  const job = await jobs.create({ target: { notebookId: await notebookOf('1 / 0') }, schedule: YEARLY });
  for (let i = 0; i < 5; i++) {
    const occurrence = await ended(job.id, (await jobs.run(job.id)).id);
    assert.deepEqual(
      [occurrence.status, occurrence.reason?.code, occurrence.attempts],
      ['failed', 'cell_failed', 1],
    );
  }
  const paused = await jobs.get(job.id);
  assert.deepEqual([paused.status, paused.paused, paused.reason?.code], ['paused', true, 'failures']);
  assert.match(
    paused.reason?.message ?? '',
    /^5 occurrences in a row have failed\. The last failure: .*ZeroDivisionError/,
  );
  assert.deepEqual(paused.next, []);
  const resumed = await jobs.update(job.id, { expectedUpdatedAt: paused.updatedAt, paused: false });
  assert.deepEqual([resumed.status, resumed.reason, resumed.failures], ['waiting', null, 0]);
  assert.equal(resumed.next.length, 5);
  await jobs.delete(job.id);
});

test('a job in progress cannot be fired again or deleted, and cancelling its run ends the occurrence', async () => {
  const notebookId = await notebookOf('import time; time.sleep(600)');
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY });
  const fired = await jobs.run(job.id);
  const running = await eventually('the run has begun', async () =>
    (await occurrencesOf(job.id)).find(({ status }) => status === 'running'),
  );
  assert.equal(await refusalOf(jobs.run(job.id)), '409 job_running');
  assert.equal(await refusalOf(jobs.delete(job.id)), '409 job_running');
  await runs.cancel(running.runId ?? '');
  assert.equal((await ended(job.id, fired.id)).status, 'cancelled');
  assert.equal((await jobs.get(job.id)).failures, 0);
  await jobs.delete(job.id);
});

test('a change needs the latest state of the job, and moves its instants', async () => {
  const job = await jobs.create({
    name: 'a',
    target: { notebookId: await notebookOf('1') },
    schedule: YEARLY,
  });
  const changed = await jobs.update(job.id, {
    expectedUpdatedAt: job.updatedAt,
    name: 'b',
    schedule: { cron: '30 6 * * *' },
    timeZone: 'Asia/Tokyo',
  });
  assert.equal(changed.name, 'b');
  assert(
    changed.next.every((at) => at.endsWith('T21:30:00.000Z')),
    String(changed.next),
  );
  assert.equal(
    await refusalOf(jobs.update(job.id, { expectedUpdatedAt: job.updatedAt, name: 'c' })),
    '409 stale_update',
  );
  const { updatedAt: expectedUpdatedAt } = changed;
  assert.equal(await refusalOf(jobs.update(job.id, { expectedUpdatedAt })), '400 invalid_request');
  assert.equal(
    await refusalOf(jobs.update(job.id, { expectedUpdatedAt, timeZone: 'Mars/X' })),
    '400 invalid_request',
  );
  assert.equal((await jobs.get(job.id)).name, 'b');
  await jobs.delete(job.id);
});

test('a schedule that is not valid makes no job, and a valid one is shown before the job is made', async () => {
  const notebookId = await notebookOf('1');
  const made = (job: Partial<NewJob>) =>
    refusalOf(jobs.create({ target: { notebookId }, schedule: YEARLY, ...job }));
  assert.equal(await made({ schedule: { cron: '61 * * * *' } }), '400 invalid_request');
  assert.equal(await made({ schedule: { at: '2020-01-01T00:00:00.000Z' } }), '400 invalid_request');
  assert.equal(await made({ timeZone: 'Nowhere' }), '400 invalid_request');
  assert.equal(await made({ target: { notebookId: 'nb_none' } }), '404 not_found');
  assert.equal(await refusalOf(jobs.preview({ cron: '0 0 30 2 *' })), '400 invalid_request');
  const { next } = await jobs.preview({ cron: '0 7 * * MON' }, 'Europe/Berlin');
  assert.equal(next.length, 5);
  assert.deepEqual(new Set(next.map((at) => new Date(at).getUTCDay())), new Set([1]));
});

test('a page of jobs that would be larger than 16 MiB ends early', async () => {
  const notebookId = await notebookOf('1');
  const large = Array<string>(125).fill('x'.repeat(8000));
  const made = [];
  for (let count = 0; count < 18; count++)
    made.push(await jobs.create({ target: { notebookId }, schedule: YEARLY, arguments: large }));
  const { items, nextCursor } = await jobs.list({ notebookId, limit: 100 });
  assert.deepEqual([items.length, nextCursor], [16, made[15]?.id]);
  const { items: rest } = await jobs.list({ notebookId, after: nextCursor ?? '' });
  assert.equal(rest.length, 2);
  for (const { id } of made) await jobs.delete(id);
});

test('jobs are listed in pages, and a job that is deleted is gone with its occurrences', async () => {
  const notebookId = await notebookOf('1');
  const made = [];
  for (const name of ['a', 'b', 'c'])
    made.push(await jobs.create({ name, target: { notebookId }, schedule: YEARLY }));
  const names = [];
  for await (const { name } of jobs.each({ limit: 2 })) names.push(name);
  assert.deepEqual(names, ['a', 'b', 'c']);
  assert.deepEqual((await jobs.list({ order: 'desc', limit: 1 })).items[0]?.name, 'c');
  for (const { id } of made) await jobs.delete(id);
  assert.deepEqual((await jobs.list()).items, []);
  const id = made[0]?.id ?? '';
  assert.equal(await refusalOf(jobs.get(id)), '404 not_found');
  assert.equal(await refusalOf(jobs.occurrences(id)), '404 not_found');
  assert.equal(await refusalOf(jobs.list({ after: 'nb_1' })), '400 invalid_cursor');
});

test('a job works with the rights of its owner, pauses when the owner loses them, and can be taken over', async () => {
  const member = await addMember(server, 'grace', 'editor');
  const theirs = member.client.jobs;
  const notebookId = await notebookOf('1');
  const job = await theirs.create({ target: { notebookId }, schedule: { everyS: 2 } });
  const other = await addMember(server, 'alan', 'editor');
  assert.equal(await refusalOf(other.client.jobs.run(job.id)), '403 role_too_low');
  await server.client.members.update('grace', { role: 'viewer' });
  const paused = await eventually('the job is paused', async () => {
    const now = await jobs.get(job.id);
    return now.status === 'paused' ? now : undefined;
  });
  assert.equal(paused.reason?.code, 'role_too_low');
  assert.equal((await occurrencesOf(job.id)).at(-1)?.reason?.code, 'role_too_low');
  await server.client.members.delete('grace');
  assert.equal((await jobs.run(job.id)).reason?.code, 'owner_left');
  const { updatedAt: expectedUpdatedAt } = await jobs.get(job.id);
  const mine = await jobs.update(job.id, {
    expectedUpdatedAt,
    takeOver: true,
    schedule: YEARLY,
    paused: false,
  });
  assert.equal(mine.status, 'waiting');
  assert.equal((await ended(job.id, (await jobs.run(job.id)).id)).status, 'completed');
  await jobs.delete(job.id);
});

test('a job whose notebook is deleted pauses and says so', async () => {
  const notebookId = await notebookOf('1');
  const job = await jobs.create({ target: { notebookId }, schedule: YEARLY });
  await notebooks.delete(notebookId);
  const fired = await jobs.run(job.id);
  assert.deepEqual([fired.status, fired.reason?.code], ['skipped', 'notebook_deleted']);
  assert.equal((await jobs.get(job.id)).reason?.message, `The notebook ${notebookId} was deleted.`);
  await jobs.delete(job.id);
});

async function notebookOf(...codes: readonly string[]): Promise<string> {
  const cells = codes.map((code, i) => ({ cell_id: `c${i}`, code }));
  return (await notebooks.create({ serialization: { cells } })).id;
}

async function occurrencesOf(jobId: string): Promise<readonly Occurrence[]> {
  return (await jobs.occurrences(jobId, { limit: 100 })).items;
}

async function ended(jobId: string, occurrenceId: string): Promise<Occurrence> {
  return eventually('the occurrence is over', async () => {
    const found = (await occurrencesOf(jobId)).find(({ id }) => id === occurrenceId);
    return found?.finishedAt == null ? undefined : found;
  });
}

async function pause(jobId: string): Promise<void> {
  const { updatedAt: expectedUpdatedAt } = await jobs.get(jobId);
  await jobs.update(jobId, { expectedUpdatedAt, paused: true });
}
