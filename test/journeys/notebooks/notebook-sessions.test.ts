/** How notebook sessions are opened, and when they are refused. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { cellsOf, openNotebook, printed, results, withoutVersions } from '#test/support/notebook-fixture.ts';
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
  assert.deepEqual(
    { ...rest, cells: withoutVersions(rest.cells) },
    {
      sessionId: notebookId,
      notebookId,
      url: `/n/${notebookId}/`,
      environmentId,
      mode: 'edit',
      arguments: [],
      ttlS: null,
      idleTimeoutS: null,
      expiresAt: null,
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
    },
  );
  await sessions.waitUntilReady(notebookId);
  await sessions.close(notebookId);
});

test('a session becomes ready, and reports how long each step of its start took', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x' }, { options: { b: { name: 'second' } } });
  const { status, phases, cells, kernel, error } = await notebook.record();
  assert.deepEqual(
    { status, cells: withoutVersions(cells), error, phases: Object.keys(phases).sort() },
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

test('an unknown notebook or environment is not found, and the error says which of the two is unknown', async () => {
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
