import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { NotebookSession } from '#src/wire/session.ts';
import { cellsOf, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { executionEnvironments: environments, notebookSessions: sessions, notebooks, executions } = client;

async function newNotebook(codes: Record<string, string> = { a: '1' }): Promise<string> {
  return (await notebooks.create({ serialization: { cells: cellsOf(codes) } })).id;
}

async function newEnvironment(): Promise<string> {
  return (await environments.create()).environmentId;
}

test('opening returns 202 with the starting session, whose id is that of its notebook', async () => {
  const [notebookId, environmentId] = [await newNotebook({ a: 'x = 1', b: '' }), await newEnvironment()];
  const { status, headers, body } = await server.request('POST', '/api/v3/notebook-sessions', {
    body: { notebookId, environmentId },
  });
  const { createdAt, updatedAt, ...rest } = body as NotebookSession;
  assert.equal(status, 202);
  assert.equal(headers.location, `/api/v3/notebook-sessions/${notebookId}`);
  assert.ok(updatedAt >= createdAt);
  assert.deepEqual(rest, {
    sessionId: notebookId,
    notebookId,
    environmentId,
    mode: 'edit',
    arguments: [],
    status: 'starting',
    startup: null,
    phases: {},
    currentRunId: null,
    cells: [
      { cellId: 'a', name: '', status: 'stale', stale: true },
      { cellId: 'b', name: '', status: 'stale', stale: true },
    ],
    kernel: null,
    error: null,
  });
  await sessions.waitUntilReady(notebookId);
  await sessions.close(notebookId);
});

test('a session becomes ready, and reports how long each step of its start took', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x' }, { options: { b: { name: 'second' } } });
  const { status, phases, cells, kernel, error } = await notebook.record();
  assert.deepEqual(
    { status, cells, error, phases: Object.keys(phases).sort() },
    {
      status: 'ready',
      cells: [
        { cellId: 'a', name: '', status: 'stale', stale: true },
        { cellId: 'b', name: 'second', status: 'stale', stale: true },
      ],
      error: null,
      phases: ['connectMs', 'forkMs', 'openMs', 'totalMs'],
    },
  );
  assert.ok(Object.values(phases).every((ms) => ms >= 0 && ms < 60_000));
  assert.notEqual(kernel, null);
  await notebook.close();
});

test('opening executes no cell, in either mode', async () => {
  for (const mode of ['edit', 'run'] as const) {
    const notebook = await openNotebook(server, { a: `open('opened-${mode}', 'w')` }, { mode });
    assert.equal(notebook.session.mode, mode);
    const file = join(server.filesDir, `opened-${mode}`);
    assert.equal(existsSync(file), false);
    assert.deepEqual(await executions.list(notebook.id), { items: [], nextCursor: null });
    await notebook.run(['a']);
    assert.equal(existsSync(file), true);
    await notebook.close();
  }
});

test('a mode other than edit and run is refused', async () => {
  const [notebookId, environmentId] = [await newNotebook(), await newEnvironment()];
  for (const mode of ['Edit', '', 1]) {
    const body = { notebookId, environmentId, mode };
    const answer = await server.request('POST', '/api/v3/notebook-sessions', { body });
    assert.deepEqual([answer.status, (answer.body as { code: string }).code], [400, 'invalid_request']);
  }
});

test('the variables of a notebook are environment variables of its kernel', async () => {
  const notebook = await openNotebook(
    server,
    { a: "import os\nprint(os.environ['GREETING'], os.environ['EMPTY'] == '')" },
    { variables: { GREETING: 'grüß dich', EMPTY: '' } },
  );
  const [result] = results(await notebook.run(['a']));
  assert.equal(printed(result!), 'grüß dich True\n');
  await notebook.close();
});

test('of fifty notebooks that are opened in one environment at once, one succeeds', async () => {
  const environmentId = await newEnvironment();
  const ids = await Promise.all(Array.from({ length: 50 }, () => newNotebook()));
  const calls = ids.map((notebookId) => sessions.open({ notebookId, environmentId }));
  assert.deepEqual(await tally(calls), { ok: 1, '409 environment_occupied': 49 });
  const winner = (await environments.get(environmentId)).notebookSessionId;
  const found = await Promise.allSettled(ids.map((id) => sessions.get(id)));
  assert.deepEqual(
    found.map(({ status }) => status === 'fulfilled'),
    ids.map((id) => id === winner),
  );
  await sessions.close(winner!);
});

test('of fifty openings of one notebook in different environments, one succeeds and the other environments stay vacant', async () => {
  const notebookId = await newNotebook();
  const ids = await Promise.all(Array.from({ length: 50 }, () => newEnvironment()));
  const calls = ids.map((environmentId) => sessions.open({ notebookId, environmentId }));
  assert.deepEqual(await tally(calls), { ok: 1, '409 session_exists': 49 });
  const { environmentId: home } = await sessions.get(notebookId);
  const occupants = await Promise.all(
    ids.map(async (id) => [id, (await environments.get(id)).notebookSessionId]),
  );
  assert.deepEqual(
    occupants.filter(([, occupant]) => occupant !== null),
    [[home, notebookId]],
  );
  await sessions.close(notebookId);
});

test('a notebook that is open cannot be opened again, in the same environment or in another', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { id: notebookId, environmentId } = notebook;
  assert.equal(await refusalOf(sessions.open({ notebookId, environmentId })), '409 environment_occupied');
  const elsewhere = { notebookId, environmentId: await newEnvironment() };
  assert.equal(await refusalOf(sessions.open(elsewhere)), '409 session_exists');
  await notebook.close();
});

test('an unknown notebook or environment is not found, and the error says which of them', async () => {
  const [notebookId, environmentId] = [await newNotebook(), await newEnvironment()];
  const unknown = 'nb_00000000000000000000000000';
  for (const [member, opening] of Object.entries({
    notebookId: { notebookId: unknown, environmentId },
    environmentId: { notebookId, environmentId: unknown },
  })) {
    const { status, code, errors } = await problemOf(sessions.open(opening));
    assert.deepEqual([status, code, errors.map(({ path }) => path)], [404, 'not_found', [`/${member}`]]);
  }
  assert.equal(await refusalOf(sessions.get(notebookId)), '404 not_found');
  assert.equal(await refusalOf(sessions.close(notebookId)), '404 not_found');
  assert.equal(await refusalOf(executions.submit(notebookId, { type: 'all' })), '404 not_found');
  assert.equal(await refusalOf(executions.list(notebookId)), '404 not_found');
  assert.equal((await environments.get(environmentId)).notebookSessionId, null);
});

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

test('a session whose kernels die one after another fails, says why, and can be closed', async () => {
  const notebook = await openNotebook(server, { a: 'import os\nos._exit(3)' });
  const events = await notebook.events();
  for (let death = 1; death <= 3; death++) {
    assert.equal((await notebook.run(['a'])).status, 'failed');
    const next = death < 3 ? 'ready' : 'failed';
    const isThere = () => events.dataOf('session.status').filter(({ status }) => status === next).length;
    if (isThere() < (death < 3 ? death : 1)) {
      await events.next(({ type, data }) => type === 'session.status' && data.status === next);
    }
  }
  const { status, error } = await notebook.record();
  assert.deepEqual(
    [status, error],
    ['failed', { code: 'kernel_exited', message: 'The kernel ended: its process exited with code 3.' }],
  );
  assert.equal(await refusalOf(notebook.submit(['a'])), '409 session_failed');
  const elsewhere = { notebookId: notebook.id, environmentId: await newEnvironment() };
  assert.equal(await refusalOf(sessions.open(elsewhere)), '409 session_exists');
  assert.equal((await notebook.close()).status, 'closed');
  await events.ended;
});

test('a session that is closed while it starts becomes closed, and its environment becomes vacant', async () => {
  const [notebookId, environmentId] = [await newNotebook(), await newEnvironment()];
  await sessions.open({ notebookId, environmentId });
  assert.equal((await sessions.close(notebookId)).status, 'closed');
  assert.equal((await environments.get(environmentId)).notebookSessionId, null);
});

test('of fifty closings of one session each gets a response, and the session closes once', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const events = await notebook.events();
  const answers = await tally(Array.from({ length: 50 }, () => notebook.close()));
  assert.equal((answers.ok ?? 0) + (answers['409 session_closed'] ?? 0), 50);
  await events.ended;
  assert.equal(events.dataOf('session.closed').length, 1);
});

test('a full server says when to retry, and accepts sessions again once one is closed', async (t) => {
  const small = await startServer(t, { TROUPE_MAX_SESSIONS: '1' });
  const first = await openNotebook(small, { a: '1' });
  const { id: notebookId } = await small.client.notebooks.create();
  const { environmentId } = await small.client.executionEnvironments.create();
  const open = () => small.client.notebookSessions.open({ notebookId, environmentId });
  const { status, code, retryAfter } = await problemOf(open());
  assert.deepEqual({ status, code }, { status: 503, code: 'at_capacity' });
  assert.ok(retryAfter! > 0);
  await first.close();
  assert.equal((await open()).status, 'starting');
  await small.client.notebookSessions.close(notebookId);
});

test('a resource of another workspace gets, byte for byte, the same response as a missing one', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const run = await notebook.run(['a']);
  const stranger = await server.stranger();
  const headers = {
    authorization: `Bearer ${stranger.token}`,
    'service-workspace-id': stranger.workspaceId,
  };
  const missing = (id: string) => `${id.slice(0, -4)}zzzz`;
  const { id, environmentId } = notebook;
  const calls: [string, (id: string) => string, string, unknown?][] = [
    ['GET', (one) => `/notebooks/${one}`, id],
    ['PATCH', (one) => `/notebooks/${one}`, id, { expectedUpdatedAt: '2031-01-31T12:00:00Z', variables: {} }],
    ['DELETE', (one) => `/notebooks/${one}`, id],
    ['GET', (one) => `/execution-environments/${one}`, environmentId],
    ['DELETE', (one) => `/execution-environments/${one}`, environmentId],
    ['GET', (one) => `/notebook-sessions/${one}`, id],
    ['DELETE', (one) => `/notebook-sessions/${one}`, id],
    ['GET', (one) => `/notebook-sessions/${one}/events`, id],
    ['GET', (one) => `/notebook-sessions/${one}/executions`, id],
    ['POST', (one) => `/notebook-sessions/${one}/executions`, id, { type: 'all' }],
    ['GET', (one) => `/runs/${one}`, run.id],
    ['POST', (one) => `/runs/${one}/cancel`, run.id],
  ];
  for (const [method, pathOf, real, body] of calls) {
    const ask = async (one: string) => {
      const answer = await server.request(method, `/api/v3${pathOf(one)}`, { headers, body });
      const { requestId } = answer.body as { requestId: string };
      const { date: _, 'x-request-id': __, ...rest } = answer.headers;
      return [answer.status, rest, answer.text.replaceAll(one, '<id>').replaceAll(requestId, '<request>')];
    };
    assert.deepEqual(await ask(real), await ask(missing(real)), `${method} ${pathOf(real)}`);
    assert.equal((await ask(real))[0], 404, `${method} ${pathOf(real)}`);
  }
  const theirs = server.clientOf(stranger);
  const [own, place] = [await theirs.notebooks.create(), await theirs.executionEnvironments.create()];
  const openings = [
    { notebookId: id, environmentId: place.environmentId },
    { notebookId: own.id, environmentId },
    { notebookId: missing(id), environmentId: place.environmentId },
  ];
  for (const opening of openings) {
    assert.equal(await refusalOf(theirs.notebookSessions.open(opening)), '404 not_found');
  }
  await notebook.close();
});

test('an open session is restored with its bindings after a restart, and nothing runs again', async (t) => {
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
