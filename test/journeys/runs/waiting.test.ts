import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { request as send } from 'node:http';
import { join } from 'node:path';
import test from 'node:test';
import type { Run, SubmittedNotebookRun } from '#src/contract/wire/run.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
const { client } = server;
const MODEL = 'openai-compatible/scripted';
const ONE = { type: 'cells', cells: [{ cellId: 'a' }] } as const;

let gates = 0;

/** A notebook whose cell `a` runs until `proceed` is called. */
async function gatedNotebook(): Promise<{ notebook: OpenNotebook; proceed: () => void; path: string }> {
  const gate = `gate-${++gates}`;
  const code = `import os, time\nwhile not os.path.exists('${gate}'): time.sleep(0.005)\n"passed"`;
  const notebook = await openNotebook(server, { a: code });
  const proceed = () => writeFileSync(join(server.filesDir, gate), '');
  return { notebook, proceed, path: `/api/v3/notebook-sessions/${notebook.id}/executions` };
}

/** Returns the newest run of the notebook once it is there. */
async function begunRun(notebook: OpenNotebook): Promise<string> {
  for (;;) {
    const { items } = await client.executions.list(notebook.id, { order: 'desc', limit: 1 });
    if (items[0] !== undefined) return items[0].id;
  }
}

async function conversation(): Promise<string> {
  const { environmentId } = await client.executionEnvironments.create();
  return (await client.agentSessions.open({ environmentId, config: { model: MODEL } })).sessionId;
}

test('an execution with a wait returns the run once it has ended, in any way', async () => {
  const notebook = await openNotebook(server, { good: '40 + 2', bad: '1 / 0' });
  for (const [cellId, status] of [
    ['good', 'completed'],
    ['bad', 'failed'],
  ] as const) {
    const body = { type: 'cells', cells: [{ cellId }] };
    const path = `/api/v3/notebook-sessions/${notebook.id}/executions?wait=60`;
    const answer = await server.request('POST', path, { body });
    const { runId, lastEventId: _, ...run } = answer.body as SubmittedNotebookRun;
    assert.deepEqual([answer.status, run.status], [200, status]);
    assert.deepEqual(run, await client.runs.get(runId));
  }
  await notebook.close();
});

test('an execution that takes longer than the wait is accepted, and a client can wait for it again', async () => {
  const { notebook, proceed } = await gatedNotebook();
  const accepted = await client.executions.run(notebook.id, ONE, { wait: 1 });
  assert.equal(accepted.status, 'running');
  assert.equal((await client.runs.get(accepted.runId, { wait: 1 })).status, 'running');
  const waiting = client.runs.get(accepted.runId, { wait: 60 });
  proceed();
  const run = await waiting;
  assert.equal(run.status, 'completed');
  assert.deepEqual(
    await client.runs.get(accepted.runId, { wait: 60 }),
    run,
    'a run that is over is not waited for',
  );
  await notebook.close();
});

test('a prompt with a wait returns the run', async () => {
  const sessionId = await conversation();
  model.script((exchange) => exchange.text('Forty-two.').end());
  const { runId, lastEventId: _, ...run } = await client.agentSessions.ask(sessionId, 'What is it?');
  assert.deepEqual([run.status, run.kind], ['completed', 'agent']);
  assert.deepEqual(run, await client.runs.get(runId));
});

test('waiting requests get the cancelled run', async () => {
  const { notebook } = await gatedNotebook();
  const waiting = client.executions.run(notebook.id, ONE);
  const runId = await begunRun(notebook);
  const others = Array.from({ length: 20 }, () => client.runs.get(runId, { wait: 60 }));
  await client.runs.cancel(runId);
  const { runId: submitted, lastEventId: _, ...run } = await waiting;
  assert.deepEqual([submitted, run.id, run.status], [runId, runId, 'cancelled']);
  for (const other of await Promise.all(others)) assert.deepEqual(other, run);
  await notebook.close();
});

test('a retry with the same idempotency key waits for the same run', async () => {
  const { notebook, proceed, path } = await gatedNotebook();
  const request = { body: ONE, headers: { 'idempotency-key': 'once' } };
  const first = server.request('POST', `${path}?wait=60`, request);
  const runId = await begunRun(notebook);
  const impatient = await server.request('POST', path, request);
  assert.deepEqual([impatient.status, (impatient.body as SubmittedNotebookRun).runId], [202, runId]);
  const second = server.request('POST', `${path}?wait=60`, request);
  proceed();
  const answers = await Promise.all([first, second]);
  for (const { status, body } of answers) {
    assert.deepEqual([status, (body as Run).id, (body as Run).status], [200, runId, 'completed']);
  }
  assert.deepEqual(
    [...answers, impatient].map(({ headers }) => headers['idempotency-replayed']),
    [undefined, 'true', 'true'],
  );
  const late = await server.request('POST', `${path}?wait=60`, request);
  assert.deepEqual([late.status, (late.body as Run).id], [200, runId]);
  assert.equal((await client.executions.list(notebook.id)).items.length, 1);
  await notebook.close();
});

test('the wait ends at once when the caller loses the right to the run, and the run continues', async () => {
  const { notebook, proceed, path } = await gatedNotebook();
  await client.members.create({ userId: 'guest', role: 'editor' });
  const { token, id } = await client.accessTokens.create({
    name: 'guest',
    userId: 'guest',
    scopes: ['workspaceRuntime:connect'],
  });
  const headers = { authorization: `Bearer ${token}` };
  const waiting = server.request('POST', `${path}?wait=60`, { body: ONE, headers });
  const runId = await begunRun(notebook);
  const reading = server.request('GET', `/api/v3/runs/${runId}?wait=60`, { headers });
  await server.request('GET', `/api/v3/runs/${runId}`, { headers });
  await client.accessTokens.delete(id);
  for (const { status } of await Promise.all([waiting, reading])) assert.equal(status, 401);
  proceed();
  assert.equal((await client.runs.get(runId, { wait: 60 })).status, 'completed');
  await notebook.close();
});

test('a caller that loses the right to read the conversation during the wait does not get the prompt', async () => {
  const sessionId = await conversation();
  await client.members.create({ userId: 'reader', role: 'editor' });
  const { token } = await client.accessTokens.create({
    name: 'reader',
    userId: 'reader',
    scopes: ['workspaceRuntime:connect'],
  });
  const reader = server.clientOf({ token, workspaceId: OWNER.workspaceId });
  await client.agentSessions.grant(sessionId, 'reader');
  let finish = () => {};
  const asked = new Promise<void>((resolve) => {
    model.script((exchange) => {
      finish = () => exchange.text('Secret.').end();
      resolve();
      return exchange;
    });
  });
  const { runId } = await client.agentSessions.prompt(sessionId, 'Say it.');
  const waiting = refusalOf(reader.runs.get(runId, { wait: 60 }));
  await reader.runs.get(runId);
  await client.agentSessions.revoke(sessionId, 'reader');
  await asked;
  finish();
  assert.equal(await waiting, '404 not_found');
  assert.equal((await client.runs.get(runId, { wait: 60 })).status, 'completed');
});

test('a client that leaves during the wait does not end the run', async () => {
  const { notebook, proceed, path } = await gatedNotebook();
  const headers = {
    authorization: `Bearer ${OWNER.token}`,
    'service-workspace-id': OWNER.workspaceId,
    'content-type': 'application/json',
  };
  const leaving = send(`${server.baseUrl}${path}?wait=300`, { method: 'POST', headers });
  leaving.on('error', () => {});
  leaving.end(JSON.stringify(ONE));
  const runId = await begunRun(notebook);
  leaving.destroy();
  proceed();
  assert.equal((await client.runs.get(runId, { wait: 60 })).status, 'completed');
  await notebook.close();
});

test('a wait that is not a number of seconds up to 300 is refused, and no cell runs', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const wait of [-1, 301, 0.5]) {
    assert.equal(await refusalOf(client.executions.run(notebook.id, ONE, { wait })), '400 invalid_request');
    assert.equal(await refusalOf(client.runs.get(notebook.id, { wait })), '400 invalid_request');
  }
  assert.equal(await refusalOf(client.runs.get('run_1', { wait: 5 })), '404 not_found');
  assert.deepEqual((await client.executions.list(notebook.id)).items, []);
  await notebook.close();
});

test('after a crash during the wait, a retry finds the begun run; a stale run is neither waited for nor returned as ended', async (t) => {
  const first = await startChildServer(t);
  const notebook = await openNotebook(first, { a: 'import time\ntime.sleep(1000)' });
  const path = `/api/v3/notebook-sessions/${notebook.id}/executions?wait=60`;
  const request = { body: ONE, headers: { 'idempotency-key': 'crash' } };
  const cut = sendRaw(first.baseUrl, 'POST', path, OWNER, request).catch(() => undefined);
  let runId: string | undefined;
  while (runId === undefined) runId = (await first.client.executions.list(notebook.id)).items[0]?.id;
  await first.end('SIGKILL');
  assert.equal(await cut, undefined);
  const second = await first.again();
  const { status, body } = await sendRaw(second.baseUrl, 'POST', path, OWNER, request);
  assert.deepEqual([status, (body as SubmittedNotebookRun).runId], [202, runId]);
  const stale = await second.client.runs.get(runId, { wait: 60 });
  assert.deepEqual([stale.status, stale.stale], ['running', true]);
  assert.equal((await second.client.executions.list(notebook.id)).items.length, 1);
});
