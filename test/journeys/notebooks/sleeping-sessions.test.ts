// own kernel host: it stops the host
/** Sessions that sleep are shown as ready: requests that need their kernel wait for it. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import { type Codes, cellsOf, type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { withoutKernels } from '#test/support/processes.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

async function sleepingNotebook(codes: Codes): Promise<OpenNotebook> {
  const notebook = await openNotebook(server, codes);
  const { status, kernel } = await client.notebookSessions.hibernate(notebook.id);
  assert.deepEqual([status, kernel], ['ready', null]);
  return notebook;
}

/** Resolves once a list shows that the session is being woken. The list itself wakes nothing. */
async function isRestoring({ id }: OpenNotebook): Promise<void> {
  for (;;) {
    const { items } = await client.notebookSessions.list({ status: 'restoring' });
    if (items.some(({ sessionId }) => sessionId === id)) return;
  }
}

test('executions, code calls and bindings of agents wake a sleeping session and wait for its kernel', async () => {
  const notebook = await sleepingNotebook({ a: 'x = 2\nx' });
  const { id, environmentId } = notebook;
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await client.notebookSessions.hibernate(id);
  assert.equal((await callCode(client, id, '1 + 1')).success, true);
  await client.notebookSessions.hibernate(id);
  assert.equal((await client.agentSessions.open({ environmentId, notebookSessionId: id })).status, 'ready');
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
});

test('one of fifty executions of a sleeping session is accepted, and the other executions find the session busy', async () => {
  const wait = "import os, time\nwhile not os.path.exists('all-are-answered'): time.sleep(0.005)";
  const notebook = await sleepingNotebook({ a: wait });
  const calls = Array.from({ length: 50 }, () => notebook.submit(['a']));
  assert.deepEqual(await tally(calls), { ok: 1, '409 session_busy': 49 });
  writeFileSync(join(server.filesDir, 'all-are-answered'), '');
  const { items } = await client.executions.list(notebook.id);
  assert.equal(items.length, 1);
  assert.equal((await client.waitForRun(items[0]!.id)).status, 'completed');
  await notebook.close();
});

test('a page that may not edit is refused without waking a sleeping session', async () => {
  const notebook = await openNotebook(server, { a: 'x = 2' });
  await using page = await NotebookPageClient.open(client, server.baseUrl, notebook.id, { access: 'view' });
  await client.notebookSessions.hibernate(notebook.id);
  assert.equal((await page.send('kernel/run', { cellIds: ['a'], codes: ['x = 3'] })).status, 403);
  assert.deepEqual((await client.notebookSessions.list({ status: 'restoring' })).items, []);
  await notebook.close();
});

test('when a client leaves while the session wakes, no cell is executed and no agent is bound', async () => {
  const notebook = await sleepingNotebook({ a: "open('ran-for-nobody', 'w').close()" });
  const { id, environmentId } = notebook;
  await withoutKernels(server.pid, async () => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const post = (path: string, body: unknown) => client.send({ method: 'POST', path, body, signal });
    const calls = [
      post(`/api/v3/notebook-sessions/${id}/executions`, { type: 'all' }),
      post('/api/v3/agent-sessions', { environmentId, notebookSessionId: id }),
      callCode(client, id, "open('ran-for-nobody', 'w').close()", { signal }),
    ];
    await isRestoring(notebook);
    leaving.abort();
    for (const call of calls) await assert.rejects(call, { name: 'AbortError' });
  });
  await client.notebookSessions.waitUntilReady(id);
  assert.equal((await callCode(client, id, '1')).success, true, 'nothing else keeps the session busy');
  assert.deepEqual((await client.executions.list(id)).items, []);
  assert.equal(existsSync(join(server.filesDir, 'ran-for-nobody')), false);
  assert.equal(await refusalOf(client.agentSessions.get(id)), '404 not_found');
  await notebook.close();
});

test('a caller whose token is revoked while a session wakes is refused at once, and no cell runs', async () => {
  const notebook = await sleepingNotebook({ a: '1' });
  const { id: tokenId, token } = await client.accessTokens.create({
    name: 'short',
    scopes: ['workspaceRuntime:connect'],
  });
  const theirs = server.clientOf({ token, workspaceId: OWNER.workspaceId });
  await withoutKernels(server.pid, async () => {
    const refused = refusalOf(theirs.executions.submit(notebook.id, { type: 'all' }));
    await isRestoring(notebook);
    await client.accessTokens.delete(tokenId);
    assert.equal(await refused, '401 unauthenticated');
  });
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual((await client.executions.list(notebook.id)).items, []);
  await notebook.close();
});

test('a session that is being opened refuses work and names a time for a retry, and accepts work once it is ready', async () => {
  const { id } = await client.notebooks.create({ serialization: { cells: cellsOf({ a: '1' }) } });
  const { environmentId } = await client.executionEnvironments.create();
  await withoutKernels(server.pid, async () => {
    const { status } = await client.notebookSessions.open({ notebookId: id, environmentId });
    assert.equal(status, 'starting');
    const refused = [
      client.executions.submit(id, { type: 'all' }),
      callCode(client, id, '1'),
      client.agentSessions.open({ environmentId, notebookSessionId: id }),
    ];
    const problems = await Promise.all(refused.map(problemOf));
    assert.deepEqual(
      problems.map(({ status, code, retryAfter }) => [status, code, retryAfter]),
      [
        [409, 'session_not_ready', 1],
        [409, 'session_not_ready', 1],
        [409, 'notebook_not_ready', 1],
      ],
    );
  });
  await client.notebookSessions.waitUntilReady(id);
  const { runId } = await client.executions.submit(id, { type: 'all' });
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  assert.equal((await callCode(client, id, '1')).success, true);
  await client.notebookSessions.close(id);
});

test('a server that stops while a request waits for a kernel answers the request and ends in an orderly way', async (t) => {
  const stopping = await startServer(t);
  const notebook = await openNotebook(stopping, { a: '1' });
  const { hibernate, list } = stopping.client.notebookSessions;
  await hibernate(notebook.id);
  await withoutKernels(stopping.pid, async () => {
    const refused = refusalOf(notebook.submit(['a']));
    while ((await list({ status: 'restoring' })).items.length === 0);
    const restarting = stopping.restart();
    assert.equal(await refused, '503 unavailable');
    return restarting;
  });
});
