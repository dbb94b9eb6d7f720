import assert from 'node:assert/strict';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const PATH = '/api/cee/kernel/execute';
const RUNNING = 'import time\nprint("begun", flush=True)\ntime.sleep(600)';

/** The status and code of a request as it is given. */
async function refusal(headers: Record<string, string | undefined>, body: unknown = { code: '1' }) {
  const answer = await server.request('POST', PATH, { headers, body });
  return `${answer.status} ${(answer.body as { code?: string }).code}`;
}

test('a call without a session returns 400, and a call with an invisible session returns 404', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const stranger = await server.stranger();
  const theirs = { 'service-workspace-id': stranger.workspaceId, 'service-session-id': notebook.id };
  assert.equal(await refusal({}), '400 missing_session');
  assert.equal(await refusal({ 'service-session-id': '' }), '400 missing_session');
  for (const unknown of ['nb_unknown', 'no such/thing', 'x'.repeat(500)]) {
    assert.equal(await refusal({ 'service-session-id': unknown }), '404 not_found', unknown);
  }
  assert.equal(
    await refusal({ ...theirs, authorization: `Bearer ${stranger.token}` }),
    '404 not_found',
    'another workspace’s',
  );
  const { id: unopened } = await client.notebooks.create({});
  assert.equal(await refusal({ 'service-session-id': unopened }), '404 not_found', 'never opened');
  await notebook.close();
});

test('a call needs a token, a workspace, and a body with code and optionally an id', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const session = { 'service-session-id': notebook.id };
  assert.equal(await refusal({ ...session, authorization: undefined }), '401 unauthenticated');
  assert.equal(await refusal({ ...session, 'service-workspace-id': undefined }), '400 missing_workspace');
  for (const body of [
    {},
    { code: 1 },
    { code: '1', timeout: 3 },
    { code: '1', tool_call_id: 7 },
    { code: '1', tool_call_id: 'x'.repeat(257) },
    { code: '1', toolCallId: 'x' },
    '{"code": "1"',
    [],
  ]) {
    assert.match(await refusal(session, body), /^400 /, JSON.stringify(body));
  }
  assert.equal(
    await refusal({ ...session, 'content-type': 'text/plain' }, '1'),
    '415 unsupported_media_type',
  );
  const large = { code: `#${'x'.repeat(1024 * 1024)}` };
  assert.equal(await refusal(session, large), '413 body_too_large');
  assert.equal((await callCode(client, notebook.id, '')).success, true, 'code may be empty');
  await notebook.close();
});

test('a viewer, and a token without the scope, may not run code', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await client.members.create({ userId: 'watcher', role: 'viewer' });
  const { token: viewer } = await client.accessTokens.create({
    name: 'v',
    userId: 'watcher',
    scopes: ['workspaceRuntime:connect'],
  });
  const { token: narrow } = await client.accessTokens.create({ name: 'n', scopes: ['workspace:manage'] });
  for (const token of [viewer, narrow]) {
    const answer = await refusal({
      'service-session-id': notebook.id,
      authorization: `Bearer ${token}`,
    });
    assert.match(answer, /^403 /);
  }
  await notebook.close();
});

test('a session in run mode accepts no code', async () => {
  const notebook = await openNotebook(server, { a: '1' }, { mode: 'run' });
  assert.equal(await refusalOf(callCode(client, notebook.id, '1')), '409 session_not_editable');
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
});

test('a closed session accepts no code', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await notebook.close();
  assert.equal(await refusalOf(callCode(client, notebook.id, '1')), '409 session_closed');
});

test('a session that is busy with a run accepts no call', async () => {
  const notebook = await openNotebook(server, { a: RUNNING });
  await using events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(({ type }) => type === 'console-output');
  assert.equal(await refusalOf(callCode(client, notebook.id, '1')), '409 session_busy');
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  assert.equal((await callCode(client, notebook.id, '1')).success, true);
  await notebook.close();
});

test('a session that is busy with a call accepts no other call and no run, and a refused call or run leaves no trace', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const abort = new AbortController();
  const call = callCode(client, notebook.id, RUNNING, { signal: abort.signal }).catch(() => 'left');
  await events.until(({ type }) => type === 'console-output');
  const { status, currentRunId } = await notebook.record();
  assert.deepEqual([status, currentRunId], ['busy', null]);
  assert.equal(await refusalOf(callCode(client, notebook.id, '1')), '409 session_busy');
  assert.equal(await refusalOf(notebook.submit(['a'])), '409 session_busy');
  abort.abort();
  assert.equal(await call, 'left');
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual((await client.executions.list(notebook.id)).items, [], 'code is recorded as no run');
  await notebook.close();
});
