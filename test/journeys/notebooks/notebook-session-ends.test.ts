/** How notebook sessions close, fail, and are opened or restored after that. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { cellsOf, openNotebook, results } from '#test/support/notebook-fixture.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { executionEnvironments: environments, notebookSessions: sessions, notebooks, executions } = client;

async function newEnvironment(): Promise<string> {
  return (await environments.create()).environmentId;
}

test('a closed session stays closed and can only be read', async () => {
  const notebook = await openNotebook(server, { a: 'print("once")' });
  const run = await notebook.run(['a']);
  const closed = await notebook.close();
  const { status, environmentId, currentRunId, kernel, error } = closed;
  assert.deepEqual(
    { status, environmentId, currentRunId, kernel, error },
    {
      status: 'closed',
      environmentId: notebook.environmentId,
      currentRunId: null,
      kernel: null,
      error: null,
    },
  );
  assert.deepEqual(await notebook.record(), closed);
  assert.equal(await refusalOf(notebook.close()), '409 session_closed');
  assert.equal(await refusalOf(notebook.submit(['a'])), '409 session_closed');
  assert.deepEqual(await executions.list(notebook.id), { items: [run], nextCursor: null });
  assert.equal((await notebook.record()).status, 'closed');
});

test('a closed session can be opened again: its variables are lost, while content, history and outputs are kept', async () => {
  const first = await openNotebook(server, { a: 'x = 41', b: 'print(x); x + 1' });
  const run = await first.run([]);
  await first.close();
  const environmentId = await newEnvironment();
  await sessions.open({ notebookId: first.id, environmentId, mode: 'run' });
  const again = await sessions.waitUntilReady(first.id);
  assert.deepEqual(
    [again.status, again.environmentId, again.mode, again.cells.map(({ status }) => status)],
    ['ready', environmentId, 'run', ['stale', 'stale']],
  );
  const events = await first.events();
  assert.deepEqual(
    events.dataOf('cell-op').map(({ cellId, status, output }) => [cellId, status, output?.data ?? null]),
    [
      ['a', 'stale', ''],
      ['b', 'stale', "<pre class='text-xs'>42</pre>"],
    ],
  );
  await events[Symbol.asyncDispose]();
  assert.deepEqual(await executions.list(first.id), { items: [run], nextCursor: null });
  assert.deepEqual(
    results(await first.run(['b'])).map(({ cellId, status }) => [cellId, status]),
    [
      ['a', 'success'],
      ['b', 'success'],
    ],
  );
  await first.close();
});

test('a kernel that dies fails its run with the cause, and its session is restored with its bindings', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'import os\nos._exit(3)' });
  await notebook.run(['a']);
  const events = await notebook.events();
  const run = await notebook.run(['b']);
  assert.deepEqual(
    [run.status, run.error],
    ['failed', { code: 'kernel_exited', message: 'The kernel ended: its process exited with code 3.' }],
  );
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
  assert.deepEqual(events.dataOf('session.status'), [
    { status: 'busy' },
    { status: 'restoring', reason: 'kernel_exited' },
    { status: 'ready' },
  ]);
  await events[Symbol.asyncDispose]();
  const { environmentId, mode, status, cells } = await notebook.record();
  assert.deepEqual(
    { environmentId, mode, status, stale: cells.map(({ stale }) => stale) },
    { environmentId: notebook.environmentId, mode: 'edit', status: 'ready', stale: [true, true] },
  );
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await notebook.close();
});

test('a session that is closed while it starts becomes closed, and its environment becomes vacant', async () => {
  const { id: notebookId } = await notebooks.create({ serialization: { cells: cellsOf({ a: '1' }) } });
  const environmentId = await newEnvironment();
  await sessions.open({ notebookId, environmentId });
  assert.equal((await sessions.close(notebookId)).status, 'closed');
  assert.equal((await environments.get(environmentId)).notebookSessionId, null);
});

test('each of fifty closings of one session gets a response, and the session closes once', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const events = await notebook.events();
  const answers = await tally(Array.from({ length: 50 }, () => notebook.close()));
  assert.equal((answers.ok ?? 0) + (answers['409 session_closed'] ?? 0), 50);
  await events.ended;
  assert.equal(events.dataOf('session.closed').length, 1);
});

test('an open session is restored with its bindings after a restart, and no cell runs again', async (t) => {
  const before = await startServer(t);
  const notebook = await openNotebook(before, { a: "open('ran', 'a').write('x'); x = 1", b: 'x + 1' });
  const run = await notebook.run([]);
  const after = await before.restart();
  const ready = await after.client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual(
    [ready.status, ready.environmentId, ready.mode, ready.currentRunId, ready.cells.map((c) => c.status)],
    ['ready', notebook.environmentId, 'edit', null, ['stale', 'stale']],
  );
  assert.equal(
    (await after.client.executionEnvironments.get(notebook.environmentId)).notebookSessionId,
    notebook.id,
  );
  assert.deepEqual(await after.client.runs.get(run.id), run);
  assert.equal(readFileSync(join(after.filesDir, 'ran'), 'utf8'), 'x');
  await after.client.notebookSessions.close(notebook.id);
});
