/** What jobs run besides copies of notebooks: open sessions and conversations; and what they do with overlapping instants. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NewJob, Occurrence } from '#src/contract/wire/job.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const { jobs, runs, agentSessions, executionEnvironments } = client;

const YEARLY = { cron: '0 7 1 1 *' };

test('a job with the target of an open session runs there, with the state of the session', async () => {
  const notebook = await openNotebook(server, { a: 'x = 20', b: 'x * 2 + 2' });
  await notebook.run(['a']);
  const job = await made({ target: { notebookId: notebook.id, session: 'open', cells: ['b'] } });
  const { status, runId } = await firedAndOver(job.id);
  const run = await runs.get(runId ?? '');
  assert.deepEqual([status, run.sessionId], ['completed', notebook.id]);
  assert.match(JSON.stringify(run.output), /42/);
  await notebook.close();
});

test('an instant is skipped when the notebook has no open session, or a busy one', async () => {
  const notebook = await openNotebook(server, { a: 'import time; time.sleep(600)' });
  const job = await made({ target: { notebookId: notebook.id, session: 'open' } });
  const runId = await notebook.submit(['a']);
  assert.deepEqual(outcomeOf(await jobs.run(job.id)), ['skipped', 'busy']);
  await runs.cancel(runId);
  await client.waitForRun(runId);
  await notebook.close();
  assert.deepEqual(outcomeOf(await jobs.run(job.id)), ['skipped', 'no_session']);
  const { status, failures } = await jobs.get(job.id);
  assert.deepEqual([status, failures], ['waiting', 0]);
});

test('a job prompts a conversation, and is skipped while the conversation is busy or closed', async () => {
  const { sessionId } = await conversation();
  const job = await made({ target: { agentSessionId: sessionId, prompt: 'What is new?' } });
  model.script((exchange) => exchange.text('Nothing.').end());
  const first = await firedAndOver(job.id);
  const run = await runs.get(first.runId ?? '');
  assert.deepEqual([first.status, run.kind, run.sessionId], ['completed', 'agent', sessionId]);
  assert.equal(run.metadata?.job, job.id);
  model.script(() => undefined);
  const { runId } = await agentSessions.prompt(sessionId, 'Wait.');
  assert.deepEqual(outcomeOf(await jobs.run(job.id)), ['skipped', 'conversation_busy']);
  await runs.cancel(runId);
  await client.waitForRun(runId);
  await agentSessions.close(sessionId);
  assert.deepEqual(outcomeOf(await jobs.run(job.id)), ['skipped', 'conversation_closed']);
});

test('a deleted conversation pauses its job', async () => {
  const { sessionId } = await conversation();
  const job = await made({ target: { agentSessionId: sessionId, prompt: 'Hello' } });
  await agentSessions.delete(sessionId);
  assert.deepEqual(outcomeOf(await jobs.run(job.id)), ['skipped', 'conversation_deleted']);
  const { status, reason } = await jobs.get(job.id);
  assert.deepEqual([status, reason?.code], ['paused', 'conversation_deleted']);
});

test('a job prompts only conversations that its owner can use, and only readers of the conversation see it', async () => {
  const { sessionId } = await conversation();
  const grace = await addMember(server, 'grace', 'editor');
  const alan = await addMember(server, 'alan', 'editor');
  const target = { agentSessionId: sessionId, prompt: 'Hello' };
  const theirs = () => grace.client.jobs.create({ target, schedule: YEARLY });
  assert.equal(await refusalOf(theirs()), '404 not_found');
  await agentSessions.grant(sessionId, 'grace');
  const job = await theirs();
  assert.equal(await refusalOf(alan.client.jobs.get(job.id)), '404 not_found');
  assert.equal(await refusalOf(alan.client.jobs.occurrences(job.id)), '404 not_found');
  const { items } = await alan.client.jobs.list({ limit: 100 });
  assert(items.every(({ id }) => id !== job.id));
  assert.equal((await jobs.get(job.id)).ownerId, 'grace');
  await agentSessions.revoke(sessionId, 'grace');
  assert.deepEqual(outcomeOf(await grace.client.jobs.run(job.id)), ['skipped', 'conversation_not_shared']);
  assert.equal((await jobs.get(job.id)).status, 'paused');
});

test('arguments are refused for a target that has no session of its own', async () => {
  const { sessionId } = await conversation();
  const target = { agentSessionId: sessionId, prompt: 'Hello' };
  assert.equal(
    await refusalOf(jobs.create({ target, schedule: YEARLY, arguments: ['--a'] })),
    '400 invalid_request',
  );
});

test('with queue the instant that waits fires when the occurrence in progress is over', async () => {
  const notebookId = await sleeping(600);
  const job = await made({ target: { notebookId }, schedule: { everyS: 1 }, overlap: 'queue' });
  const [first] = await eventually('an instant waits, and another one was skipped', async () => {
    const all = await occurrencesOf(job.id);
    return all[0]?.status === 'running' && all[1]?.status === 'queued' && all[2]?.status === 'skipped'
      ? all
      : undefined;
  });
  await runs.cancel(first?.runId ?? '');
  const second = await eventually('the instant that waited has a run', async () => {
    const [before, next] = await occurrencesOf(job.id);
    return before?.status === 'cancelled' && next?.status === 'running' ? next : undefined;
  });
  await pause(job.id);
  await runs.cancel(second.runId ?? '');
});

test('with cancel each instant cancels the run before it, and fires once that run has ended', async () => {
  const notebookId = await sleeping(600);
  const job = await made({ target: { notebookId }, schedule: { everyS: 3 }, overlap: 'cancel' });
  const all = await eventually('two runs were superseded', async () => {
    const found = await occurrencesOf(job.id);
    const superseded = found.filter(({ reason, runId }) => reason?.code === 'superseded' && runId !== null);
    return superseded.length >= 2 ? found : undefined;
  });
  await pause(job.id);
  for (const { status, reason, runId } of all)
    if (reason?.code === 'superseded') {
      assert.equal(status, 'cancelled');
      if (runId !== null) assert.equal((await runs.get(runId)).status, 'cancelled');
    }
  assert.equal((await jobs.get(job.id)).failures, 0);
  await eventually('the last run has begun or was dropped', async () => {
    const last = (await occurrencesOf(job.id)).find(({ status }) => status === 'running');
    if (last !== undefined) await runs.cancel(last.runId ?? '').catch(() => undefined);
    return (await jobs.get(job.id)).status === 'paused';
  });
});

test('with retryOn all the failure of a cell is attempted again, and by default it is not', async () => {
  const cells = [{ cell_id: 'c', code: '1 / 0' }];
  const { id: notebookId } = await client.notebooks.create({ serialization: { cells } });
  const job = await made({ target: { notebookId }, retries: 1, retryOn: 'all' });
  await jobs.run(job.id);
  const [again] = await eventually('the occurrence is attempted again', async () => {
    const all = await occurrencesOf(job.id);
    return all[0]?.status === 'backing-off' ? all : undefined;
  });
  assert.equal(again?.reason?.code, 'cell_failed');
  const once = await made({ target: { notebookId }, retries: 1 });
  assert.deepEqual(outcomeOf(await firedAndOver(once.id)), ['failed', 'cell_failed']);
});

async function conversation() {
  const { environmentId } = await executionEnvironments.create();
  return agentSessions.open({ environmentId });
}

async function sleeping(seconds: number): Promise<string> {
  const cells = [{ cell_id: 'c', code: `import time; time.sleep(${seconds})` }];
  return (await client.notebooks.create({ serialization: { cells } })).id;
}

function made(job: Pick<NewJob, 'target'> & Partial<NewJob>) {
  return jobs.create({ schedule: YEARLY, ...job });
}

async function firedAndOver(jobId: string): Promise<Occurrence> {
  const { id } = await jobs.run(jobId);
  return eventually('the occurrence is over', async () => {
    const found = (await occurrencesOf(jobId)).find((occurrence) => occurrence.id === id);
    return found?.finishedAt == null ? undefined : found;
  });
}

async function occurrencesOf(jobId: string): Promise<readonly Occurrence[]> {
  return (await jobs.occurrences(jobId, { limit: 100 })).items;
}

function outcomeOf({ status, reason }: Occurrence): readonly [string, string | undefined] {
  return [status, reason?.code];
}

async function pause(jobId: string): Promise<void> {
  const { updatedAt: expectedUpdatedAt } = await jobs.get(jobId);
  await jobs.update(jobId, { expectedUpdatedAt, paused: true });
}
