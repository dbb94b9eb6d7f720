/** `POST …/interrupt` ends the work that runs in a session. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const { interrupt } = client.notebookSessions;
const LOOP = 'print("begun", flush=True)\nwhile True: pass';

/** Resolves with the audit entries about interruptions of the session. */
async function audited(target: string): Promise<(string | null)[]> {
  const details: (string | null)[] = [];
  for await (const { detail } of client.eachAudited({ action: 'session.interrupt', target }))
    details.push(detail);
  return details;
}

test('interrupting a session cancels its run, keeps its variables, and is idempotent', async () => {
  const notebook = await openNotebook(server, { a: 'x = 41', loop: LOOP });
  await notebook.run(['a']);
  await using events = await notebook.events();
  const runId = await notebook.submit(['loop']);
  await events.until(({ type }) => type === 'console-output');
  const { status, headers, body } = await server.request(
    'POST',
    `/api/v3/notebook-sessions/${notebook.id}/interrupt`,
  );
  assert.deepEqual([status, body], [202, { sessionId: notebook.id, status: 'interrupting', runId }]);
  assert.equal(headers.location, `/api/v3/notebook-sessions/${notebook.id}`);
  const run = await client.waitForRun(runId);
  assert.deepEqual([run.status, run.error], ['cancelled', null]);
  await client.notebookSessions.waitUntilReady(notebook.id);
  const idle = { sessionId: notebook.id, status: 'idle', runId: null };
  const again = await server.request('POST', `/api/v3/notebook-sessions/${notebook.id}/interrupt`);
  assert.deepEqual([again.status, again.body], [200, idle]);
  const after = await client.code.execute(notebook.id, 'print(x)');
  assert.equal(after.stdout, '41\n');
  assert.deepEqual(await audited(notebook.id), [runId], 'only the interruption of something is audited');
  await notebook.close();
});

test('interrupting a session ends its code call, and the result reports the interrupt', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const call = client.code.execute(notebook.id, LOOP);
  await events.until(({ type }) => type === 'console-output');
  const interruption = { sessionId: notebook.id, status: 'interrupting', runId: null };
  assert.deepEqual(await interrupt(notebook.id), interruption);
  const { success, stdout, errors } = await call;
  assert.deepEqual([success, stdout, errors.length > 0], [false, 'begun\n', true]);
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal((await interrupt(notebook.id)).status, 'idle');
  assert.deepEqual(await audited(notebook.id), ['code']);
  await notebook.close();
});

test('interrupting a session ends the tool call of an agent in the session, and the prompt continues', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { sessionId } = await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  await using events = await notebook.events();
  model.script(
    (exchange) => exchange.calls(['run_python', { code: LOOP }]).end(),
    (exchange) => exchange.text('It was interrupted.').end(),
  );
  const asked = client.agentSessions.ask(sessionId, 'Try.');
  await events.until(({ type }) => type === 'console-output');
  assert.equal((await interrupt(notebook.id)).status, 'interrupting');
  assert.equal((await asked).status, 'completed');
  await notebook.close();
});

test('an interrupt does not wake a sleeping session, and is refused by a closed or unknown session', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await client.notebookSessions.hibernate(notebook.id);
  assert.equal((await interrupt(notebook.id)).status, 'idle');
  const { items } = await client.actors({ kind: 'notebook-session', q: notebook.id, ended: true });
  assert.ok(
    items.every(({ path }) => !path.startsWith('live')),
    JSON.stringify(items),
  );
  await notebook.close();
  assert.equal(await refusalOf(interrupt(notebook.id)), '409 session_closed');
  assert.equal(await refusalOf(interrupt('nb_unknown')), '404 not_found');
});

test('members who may execute may interrupt the work of others, and viewers may not interrupt', async () => {
  const editor = await addMember(server, 'ed', 'editor');
  const viewer = await addMember(server, 'vic', 'viewer');
  const notebook = await openNotebook(server, { loop: LOOP });
  const runId = await notebook.submit(['loop']);
  assert.equal(await refusalOf(viewer.client.notebookSessions.interrupt(notebook.id)), '403 role_too_low');
  assert.equal((await editor.client.notebookSessions.interrupt(notebook.id)).runId, runId);
  assert.equal((await client.waitForRun(runId)).status, 'cancelled');
  await notebook.close();
});
