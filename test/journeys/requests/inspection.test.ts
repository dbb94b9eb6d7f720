import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

test('an operator sees the reason why an execution was refused', async () => {
  const notebook = await openNotebook(server, { a: 'secret = 1\nwhile True: pass' });
  const { runId } = await client.executions.submit(notebook.id, { type: 'all' });
  const again = client.executions.submit(notebook.id, { type: 'all' });
  assert.equal(await refusalOf(again), '409 session_busy');
  const actor = await client.actor('notebook-session', notebook.id);
  assert.equal(actor.presence, 'live');
  assert.match(actor.path, /^live\.busy/);
  assert.deepEqual(actor.links, [
    { kind: 'environment', id: notebook.environmentId },
    { kind: 'run', id: runId },
  ]);
  assert.ok(actor.trail.some(({ type, refused }) => type === 'execute' && refused === 'session_busy'));
  const refused = actor.refuses.find(({ type }) => type === 'execute');
  assert.equal(refused?.advice, 'Wait until the session is ready again, or cancel its run.');
  assert.doesNotMatch(JSON.stringify(actor), /secret/);

  const { counts } = await client.actors({ kind: 'run', limit: 1 });
  assert.ok(
    counts.some(({ kind, state, count }) => kind === 'run' && state === 'running.active' && count === 1),
  );
  const linked = await client.actors({ q: notebook.id });
  assert.deepEqual(linked.items.map(({ kind }) => kind).sort(), ['environment', 'notebook-session', 'run']);
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  const ended = await client.actor('run', runId);
  assert.deepEqual([ended.presence, ended.path, ended.trail.at(-1)?.type], ['ended', 'cancelled', 'finish']);
  assert.ok((await client.actors({ ended: true, q: runId })).items.some(({ id }) => id === runId));
  await notebook.close();
});

test('a missing actor is not found, and a cursor of another list is refused', async () => {
  assert.equal(await refusalOf(client.actor('run', 'run_unknown')), '404 not_found');
  assert.equal(await refusalOf(client.actor('toString', 'x')), '404 not_found');
  assert.equal(await refusalOf(client.chart('constructor')), '404 not_found');
  assert.equal(await refusalOf(client.actors({ after: 'run_1' })), '400 invalid_cursor');
});

test('every actor has a chart that contains its state', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { machine, path } = await client.actor('notebook-session', notebook.id);
  const { root, version } = await client.chart(machine);
  const ids = new Set<unknown>();
  const walk = (state: { id?: unknown; states?: unknown }) => {
    ids.add(state.id);
    for (const child of [state.states].flat()) if (child !== undefined) walk(Object(child));
  };
  walk(root);
  assert.ok(ids.has(`${machine}.${path}`), `${machine}.${path}`);
  const text = JSON.stringify(root);
  for (const known of [
    '"event":"after cancelGrace"',
    '"guard":"mayEdit"',
    '"execute":"session_busy"',
    '"runs":["kernel"]',
  ]) {
    assert.ok(text.includes(known), known);
  }
  const chart = (query: string) => server.request('GET', `/api/v3/charts/${machine}${query}`);
  assert.equal((await chart('')).headers['cache-control'], 'no-cache');
  assert.equal((await chart('?version=old')).headers['cache-control'], 'no-cache');
  assert.match(String((await chart(`?version=${version}`)).headers['cache-control']), /immutable/);
  await notebook.close();
});

test('members who are not owners see no actors and no charts', async () => {
  await client.members.create({ userId: 'ed', role: 'editor' });
  const { token } = await client.accessTokens.create({
    name: 'ed',
    userId: 'ed',
    scopes: ['workspaceRuntime:connect'],
  });
  const headers = { authorization: `Bearer ${token}` };
  for (const path of ['/actors', '/actors/run/run_1', '/charts/run']) {
    const { status } = await server.request('GET', `/api/v3${path}`, { headers });
    assert.equal(status, 403, path);
  }
});
