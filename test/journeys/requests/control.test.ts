import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const RUNTIME = ['workspaceRuntime:connect'] as const;

await client.members.create({ userId: 'ed', role: 'editor' });
const { token } = await client.accessTokens.create({ name: 'ed', userId: 'ed', scopes: RUNTIME });
const editor = server.clientOf({ token, workspaceId: OWNER.workspaceId });

/** The audited actions about a target, oldest first. */
async function auditedFor(target: string): Promise<string[]> {
  const actions: string[] = [];
  for await (const entry of client.eachAudited({ target })) actions.push(entry.action);
  return actions;
}

test('an operator puts a session to sleep and wakes the session, whose state refuses other commands', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', slow: 'while True: pass' });
  const { id } = notebook;
  const { hibernate, wake } = client.notebookSessions;
  const run = await notebook.submit(['slow']);
  assert.equal(await refusalOf(hibernate(id)), '409 session_busy');
  assert.equal((await wake(id)).status, 'busy', 'a session that is awake is left as it is');
  await client.runs.cancel(run);
  await client.waitForRun(run);
  assert.equal((await hibernate(id)).kernel, null);
  assert.equal((await hibernate(id)).kernel, null, 'one that sleeps is left as it is');
  assert.equal((await wake(id)).status, 'restoring');
  await client.notebookSessions.waitUntilReady(id);
  await notebook.close();
  assert.equal(await refusalOf(hibernate(id)), '409 session_closed');
  assert.equal(await refusalOf(wake(id)), '409 session_closed');
  assert.equal(await refusalOf(wake('nb_unknown')), '404 not_found');
  assert.deepEqual(await auditedFor(id), [
    'session.wake',
    'session.hibernate',
    'session.hibernate',
    'session.wake',
    'session.close',
  ]);
  assert.deepEqual(await auditedFor(run), ['run.cancel']);
  const { trail } = await client.actor('notebook-session', id);
  assert.ok(trail.some(({ type, refused }) => type === 'hibernate' && refused === 'session_busy'));
});

test('only owners whose token may manage the workspace put sessions to sleep and wake them', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const runtimeOnly = await client.accessTokens.create({ name: 'runtime', scopes: RUNTIME });
  const limited = server.clientOf({ token: runtimeOnly.token, workspaceId: OWNER.workspaceId });
  for (const [caller, refusal] of [
    [editor, '403 missing_scope'],
    [limited, '403 missing_scope'],
  ] as const) {
    assert.equal(await refusalOf(caller.notebookSessions.hibernate(notebook.id)), refusal);
    assert.equal(await refusalOf(caller.notebookSessions.wake(notebook.id)), refusal);
  }
  await notebook.close();
});

test('many runs are cancelled at once, and the answer has a result for each', async () => {
  const notebooks = await Promise.all(
    ['a', 'b'].map((name) => openNotebook(server, { [name]: 'while True: pass' })),
  );
  const runs = await Promise.all(notebooks.map((notebook) => notebook.submit({ type: 'all' })));
  const results = await client.runs.cancelMany([...runs, 'run_unknown', 'a/b']);
  assert.deepEqual(
    results.map(({ status, error }) => status ?? error?.code),
    ['cancelling', 'cancelling', 'not_found', 'not_found'],
  );
  for (const run of runs) assert.equal((await client.waitForRun(run)).status, 'cancelled');
  assert.deepEqual(await Promise.all(runs.map(auditedFor)), [['run.cancel'], ['run.cancel']]);
  const [again] = await client.runs.cancelMany([runs[0]!]);
  assert.equal(again?.error?.code, 'run_finished');
  const many = Array.from({ length: 101 }, (_, i) => `run_${i}`);
  assert.equal(await refusalOf(client.runs.cancelMany(many)), '400 invalid_request');
  assert.equal((await client.runs.cancelMany(many.slice(1))).length, 100);
  await Promise.all(notebooks.map((notebook) => notebook.close()));
});

test('an owner of the workspace cancels prompts and closes conversations of other members', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await editor.agentSessions.open({ environmentId });
  model.script((exchange) => exchange.text('Thinking'));
  const { runId } = await editor.agentSessions.prompt(sessionId, 'Think.');
  const runtimeOnly = await client.accessTokens.create({ name: 'runtime', scopes: RUNTIME });
  const limited = server.clientOf({ token: runtimeOnly.token, workspaceId: OWNER.workspaceId });
  assert.equal(await refusalOf(limited.runs.cancel(runId)), '403 conversation_read_only');
  assert.equal(await refusalOf(limited.agentSessions.close(sessionId)), '403 conversation_read_only');
  await client.runs.cancel(runId);
  assert.equal((await client.waitForRun(runId)).status, 'cancelled');
  assert.equal(
    await refusalOf(client.agentSessions.prompt(sessionId, 'More.')),
    '403 conversation_read_only',
  );
  assert.equal((await client.agentSessions.close(sessionId)).status, 'closed');
  assert.deepEqual(await auditedFor(sessionId), ['conversation.close']);
});

test('the state of the server shows its kernels, actors, store and limits, for tokens of the whole server only', async () => {
  const notebook = await openNotebook(server, { a: 'x = bytes(50_000_000)' });
  await notebook.run(['a']);
  const state = await client.server();
  const kernel = state.kernels.find(({ sessionId }) => sessionId === notebook.id);
  assert.equal(kernel?.workspaceId, OWNER.workspaceId);
  assert.ok(kernel !== undefined && kernel.memoryBytes > 50_000_000 && kernel.cpuSeconds >= 0);
  assert.equal(state.process.pid, server.pid);
  assert.ok(state.actors.some(({ kind, count }) => kind === 'notebook-session' && count >= 1));
  assert.ok(state.store.usedBytes > 0 && !state.store.isFull);
  assert.equal(state.kernelHost.state, 'up');
  const own = await client.kernels();
  assert.deepEqual(own.items.map(({ sessionId }) => sessionId).includes(notebook.id), true);
  const stranger = server.clientOf(await server.stranger());
  assert.deepEqual((await stranger.kernels()).items, []);
  assert.equal(await refusalOf(stranger.server()), '403 missing_scope');
  assert.equal(await refusalOf(editor.server()), '403 missing_scope');
  assert.equal(await refusalOf(editor.kernels()), '403 role_too_low');
  await notebook.close();
});
