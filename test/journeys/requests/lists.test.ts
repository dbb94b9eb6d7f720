import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
const MODEL = 'openai-compatible/scripted';

/** Returns an owner in a workspace of its own. */
async function newWorkspace(): Promise<Client> {
  const { id } = await server.client.workspaces.create({ name: 'Apart' });
  return server.clientOf({ token: server.owner.token, workspaceId: id });
}

async function memberOf(client: Client, workspaceId: string, role: 'owner' | 'editor' | 'viewer') {
  const userId = `${role}-${Math.random().toString(36).slice(2)}`;
  await client.members.create({ userId, role });
  const { token } = await client.accessTokens.create({
    name: role,
    userId,
    scopes: ['workspaceRuntime:connect'],
  });
  return server.clientOf({ token, workspaceId });
}

async function prompted(client: Client): Promise<{ sessionId: string; runId: string }> {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId, config: { model: MODEL } });
  model.script((exchange) => exchange.text('Done.').end());
  const { runId } = await client.agentSessions.prompt(sessionId, 'Do it.');
  await client.waitForRun(runId);
  return { sessionId, runId };
}

const ids = (page: { readonly items: readonly { readonly id: string }[] }) => page.items.map(({ id }) => id);

test('the runs of a workspace are found by status, session, environment, kind and time, in both orders', async () => {
  const client = await newWorkspace();
  const notebook = await openNotebook({ client }, { good: '1', bad: '1 / 0' });
  const other = await openNotebook({ client }, { good: '1' });
  const good = await notebook.run(['good']);
  const bad = await notebook.run(['bad']);
  const elsewhere = await other.run(['good']);
  const { sessionId, runId: asked } = await prompted(client);
  const all = [good.id, bad.id, elsewhere.id, asked];
  const { list } = client.runs;

  assert.deepEqual(ids(await list()), all);
  assert.deepEqual(ids(await list({ order: 'desc' })), all.toReversed());
  assert.deepEqual(ids(await list({ status: 'failed' })), [bad.id]);
  assert.deepEqual(ids(await list({ status: 'running' })), []);
  assert.deepEqual(ids(await list({ sessionId: notebook.id })), [good.id, bad.id]);
  assert.deepEqual(ids(await list({ sessionId: notebook.id, status: 'failed', order: 'desc' })), [bad.id]);
  assert.deepEqual(ids(await list({ sessionId })), [asked]);
  assert.deepEqual(ids(await list({ sessionId, kind: 'notebook' })), []);
  assert.deepEqual(ids(await list({ kind: 'agent' })), [asked]);
  assert.deepEqual(ids(await list({ environmentId: other.environmentId })), [elsewhere.id]);
  assert.deepEqual(ids(await list({ createdAfter: good.createdAt, createdBefore: elsewhere.createdAt })), [
    bad.id,
  ]);
  assert.deepEqual(
    ids(
      await list({
        createdAfter: good.createdAt,
        createdBefore: elsewhere.createdAt,
        order: 'desc',
      }),
    ),
    [bad.id],
  );
  const first = await list({ order: 'desc', limit: 3 });
  assert.deepEqual([ids(first), first.nextCursor], [all.slice(1).toReversed(), bad.id]);
  const second = await list({ order: 'desc', limit: 3, after: bad.id });
  assert.deepEqual([ids(second), second.nextCursor], [[good.id], null]);
  const newest = await client.executions.list(notebook.id, { order: 'desc', limit: 1 });
  assert.deepEqual([ids(newest), newest.nextCursor], [[bad.id], bad.id]);
  for (const time of ['yesterday', '2030-06-30T23:59:60Z', '2030-02-30T00:00:00Z']) {
    assert.equal(await refusalOf(list({ createdAfter: time })), '400 invalid_request', time);
  }
  assert.deepEqual(ids(await list({ createdAfter: '9999-12-31T23:59:59.999Z' })), []);
  assert.deepEqual(ids(await list({ createdAfter: '0001-01-01T00:00:00Z', limit: 1 })), all.slice(0, 1));
  assert.equal(await refusalOf(list({ after: notebook.id })), '400 invalid_cursor');
  await Promise.all([notebook.close(), other.close()]);
});

test('the list of runs is filtered by the time of their end, and by the member who submitted them', async () => {
  const { id: workspaceId } = await server.client.workspaces.create({ name: 'Polled' });
  const client = server.clientOf({ token: server.owner.token, workspaceId });
  const notebook = await openNotebook({ client }, { good: '1', bad: '1 / 0' });
  const [good, bad] = [await notebook.run(['good']), await notebook.run(['bad'])];
  const { sessionId, runId: asked } = await prompted(client);
  const last = await client.runs.get(asked);
  const { list } = client.runs;
  const all = [good.id, bad.id, asked];
  const [first, second, third] = [good, bad, last].map(({ finishedAt }) => finishedAt ?? '');

  assert.deepEqual(ids(await list({ finishedAfter: first })), all, 'the end itself is within the interval');
  assert.deepEqual(ids(await list({ finishedAfter: first, finishedBefore: second })), [good.id]);
  assert.deepEqual(ids(await list({ finishedBefore: third })), [good.id, bad.id]);
  assert.deepEqual(ids(await list({ finishedAfter: second, order: 'desc' })), [asked, bad.id]);
  assert.deepEqual(ids(await list({ finishedAfter: first, sessionId })), [asked]);
  assert.deepEqual(ids(await list({ finishedAfter: first, createdAfter: good.createdAt })), [bad.id, asked]);
  assert.deepEqual(ids(await list({ finishedAfter: first, status: ['running', 'failed'] })), [bad.id]);
  assert.deepEqual(ids(await list({ status: ['completed', 'failed'] })), all);
  assert.deepEqual(ids(await list({ status: ['failed', 'running'], sessionId: notebook.id })), [bad.id]);
  assert.deepEqual(
    ids(await list({ status: ['failed', 'completed'], sessionId: notebook.id, order: 'desc' })),
    [bad.id, good.id],
  );

  const page = await list({ finishedAfter: first, limit: 2 });
  assert.deepEqual(ids(page), [good.id, bad.id]);
  await client.runs.delete(bad.id);
  const rest = await list({ finishedAfter: first, limit: 2, after: page.nextCursor ?? '' });
  assert.deepEqual([ids(rest), rest.nextCursor], [[asked], null]);
  assert.equal(await refusalOf(list({ finishedAfter: first, after: good.id })), '400 invalid_cursor');
  assert.equal(await refusalOf(list({ after: page.nextCursor ?? '' })), '400 invalid_cursor');
  assert.equal(await refusalOf(list({ finishedAfter: 'yesterday' })), '400 invalid_request');
  assert.equal(await refusalOf(list({ status: ['failed', 'failed'] })), '400 invalid_request');
  assert.equal(await refusalOf(list({ status: [] })), '400 invalid_request');

  assert.deepEqual(ids(await list({ createdBy: good.createdBy })), [good.id, asked]);
  assert.deepEqual(ids(await list({ createdBy: good.createdBy, finishedAfter: third })), [asked]);
  const ada = await memberOf(client, workspaceId, 'editor');
  const { user } = await ada.me();
  assert.deepEqual(ids(await list({ createdBy: user.id })), []);
  const hers = await ada.executions.submit(notebook.id, { type: 'cells', cells: [{ cellId: 'good' }] });
  await ada.waitForRun(hers.runId);
  assert.deepEqual(ids(await list({ createdBy: user.id })), [hers.runId]);
});

test('the prompts of a private conversation appear to its creator and to owners of the workspace, and to nobody else', async () => {
  const { id: workspaceId } = await server.client.workspaces.create({ name: 'Private' });
  const owner = server.clientOf({ token: server.owner.token, workspaceId });
  const [ada, bob] = [
    await memberOf(owner, workspaceId, 'editor'),
    await memberOf(owner, workspaceId, 'editor'),
  ];
  const { sessionId, runId } = await prompted(ada);
  assert.deepEqual(ids(await ada.runs.list()), [runId]);
  assert.deepEqual(ids(await owner.runs.list()), [runId]);
  for (const query of [{}, { sessionId }, { kind: 'agent' }, { status: 'completed' }] as const) {
    assert.deepEqual(await bob.runs.list(query), { items: [], nextCursor: null });
  }
  const { id: bobId } = (await bob.me()).user;
  await ada.agentSessions.grant(sessionId, bobId);
  assert.deepEqual(ids(await bob.runs.list()), [runId]);
  await ada.agentSessions.revoke(sessionId, bobId);
  assert.deepEqual(ids(await bob.runs.list()), []);
});

test('sessions are listed by the time they were last opened, and found by status, title, environment and notebook', async () => {
  const client = await newWorkspace();
  const sales = await openNotebook({ client }, { a: '1' }, { title: 'Sales of MÜNCHEN' });
  const costs = await openNotebook({ client }, { a: '1' }, { title: 'Costs' });
  const plain = await openNotebook({ client }, { a: '1' });
  await costs.close();
  const found = async (query: Parameters<Client['notebookSessions']['list']>[0]) =>
    (await client.notebookSessions.list(query)).items.map(({ sessionId }) => sessionId);

  assert.deepEqual(await found({}), [sales.id, costs.id, plain.id]);
  assert.deepEqual(await found({ order: 'desc' }), [plain.id, costs.id, sales.id]);
  assert.deepEqual(await found({ status: 'open' }), [sales.id, plain.id]);
  assert.deepEqual(await found({ status: 'closed' }), [costs.id]);
  assert.deepEqual(await found({ status: 'busy' }), []);
  assert.deepEqual(await found({ title: 'münchen' }), [sales.id]);
  assert.deepEqual(await found({ environmentId: plain.environmentId }), [plain.id]);
  assert.deepEqual(await found({ notebookId: costs.id }), [costs.id]);
  const [closed] = (await client.notebookSessions.list({ status: 'closed' })).items;
  assert.deepEqual(
    { ...closed, createdAt: '', updatedAt: '' },
    {
      sessionId: costs.id,
      notebookId: costs.id,
      title: 'Costs',
      environmentId: costs.environmentId,
      mode: 'edit',
      status: 'closed',
      currentRunId: null,
      createdAt: '',
      updatedAt: '',
      url: `/n/${costs.id}/`,
    },
  );

  await sales.close();
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: sales.id, environmentId });
  assert.deepEqual(
    await found({}),
    [costs.id, plain.id, sales.id],
    'a session that is opened again is the newest',
  );
  assert.deepEqual(await found({ status: 'open' }), [plain.id, sales.id]);
  const pages = [];
  for await (const { sessionId } of client.notebookSessions.each({ limit: 1, order: 'desc' }))
    pages.push(sessionId);
  assert.deepEqual(pages, [sales.id, plain.id, costs.id]);
  for (const after of ['x', sales.id]) {
    assert.equal(await refusalOf(client.notebookSessions.list({ after })), '400 invalid_cursor');
  }
});

test('environments are listed oldest or newest first, open or closed', async () => {
  const client = await newWorkspace();
  const made: string[] = [];
  for (let i = 0; i < 4; i++) made.push((await client.executionEnvironments.create()).environmentId);
  await client.executionEnvironments.close(made[1]!);
  const found = async (query: Parameters<Client['executionEnvironments']['list']>[0]) =>
    (await client.executionEnvironments.list(query)).items.map(({ environmentId }) => environmentId);
  assert.deepEqual(await found({}), made);
  assert.deepEqual(await found({ order: 'desc', limit: 2 }), [made[3], made[2]]);
  assert.deepEqual(await found({ status: 'open' }), [made[0], made[2], made[3]]);
  assert.deepEqual(await found({ status: 'closed' }), [made[1]]);
  assert.deepEqual(await found({ status: 'open', after: made[1]!, limit: 1 }), [made[2]]);
});

test('listing restores no actor and starts no kernel', async () => {
  const first = await startServer(test);
  const notebook = await openNotebook(first, { a: '1' });
  await notebook.run(['a']);
  const second: TestServer = await first.restart();
  const { client } = second;
  const [session] = (await client.notebookSessions.list()).items;
  assert.deepEqual(
    [session?.sessionId, session?.status, session?.currentRunId],
    [notebook.id, 'ready', null],
  );
  assert.equal((await client.runs.list({ environmentId: notebook.environmentId })).items.length, 1);
  assert.equal((await client.executionEnvironments.list({ status: 'open' })).items.length, 1);
  const { items } = await client.actors();
  assert.deepEqual(
    items.filter(({ presence }) => presence !== 'stored'),
    [],
  );
});

test('a notebook has a title, which is set, changed, removed and searched', async () => {
  const client = await newWorkspace();
  const made = await client.notebooks.create({ title: 'Quarterly sales' });
  assert.equal(made.title, 'Quarterly sales');
  assert.deepEqual(made.serialization.app.options, { app_title: 'Quarterly sales' });
  const other = await client.notebooks.create({
    serialization: { app: { options: { app_title: 'Weather' } } },
  });
  const plain = await client.notebooks.create();
  assert.deepEqual([other.title, plain.title], ['Weather', null]);
  const found = async (title: string) => ids(await client.notebooks.list({ title }));
  assert.deepEqual(await found('SALES'), [made.id]);
  assert.deepEqual(await found('e'), [made.id, other.id]);
  assert.deepEqual(await found('nothing'), []);
  const renamed = await client.notebooks.update(made.id, {
    expectedUpdatedAt: made.updatedAt,
    title: 'Revenue',
  });
  assert.deepEqual([renamed.title, (await client.notebooks.get(made.id)).title], ['Revenue', 'Revenue']);
  assert.deepEqual([await found('sales'), await found('revenue')], [[], [made.id]]);
  const removed = await client.notebooks.update(made.id, {
    expectedUpdatedAt: renamed.updatedAt,
    title: null,
  });
  assert.deepEqual([removed.title, removed.serialization.app.options], [null, {}]);
  assert.deepEqual(ids(await client.notebooks.list({ order: 'desc' })), [plain.id, other.id, made.id]);
  for (const title of ['', 'x'.repeat(201), 'two\nlines']) {
    assert.equal(await refusalOf(client.notebooks.create({ title })), '400 invalid_request');
  }
  await client.notebooks.delete(other.id);
  assert.deepEqual(await found('weather'), []);
});

test('a list continues after a cursor whose item was deleted', async () => {
  const client = await newWorkspace();
  const made: string[] = [];
  for (let i = 0; i < 3; i++) made.push((await client.notebooks.create()).id);
  const { nextCursor } = await client.notebooks.list({ limit: 2 });
  await client.notebooks.delete(nextCursor!);
  assert.deepEqual(ids(await client.notebooks.list({ after: nextCursor! })), [made[2]]);
  assert.deepEqual(ids(await client.notebooks.list({ after: nextCursor!, order: 'desc' })), [made[0]]);
});

test('a caller can read the own user and the own workspaces without naming a workspace', async () => {
  const { id: workspaceId } = await server.client.workspaces.create({ name: 'Mine' });
  const owner = server.clientOf({ token: server.owner.token, workspaceId });
  const me = await server.client.me();
  assert.equal(me.token.workspaceId, null);
  assert.deepEqual(
    me.workspaces.find(({ id }) => id === workspaceId),
    { id: workspaceId, name: 'Mine', role: 'owner' },
  );
  const bound = await owner.accessTokens.create({
    name: 'bound',
    userId: (await memberOf(owner, workspaceId, 'viewer').then((client) => client.me())).user.id,
    scopes: ['workspaceRuntime:connect'],
  });
  const answer = await server.request('GET', '/api/v3/me', {
    headers: { authorization: `Bearer ${bound.token}`, 'service-workspace-id': undefined },
  });
  const { token, user, workspaces, nextCursor } = answer.body as Awaited<ReturnType<Client['me']>>;
  const { id, name, userId, scopes, createdAt, expiresAt } = bound;
  assert.deepEqual(
    [answer.status, token, user, workspaces, nextCursor],
    [
      200,
      { id, name, workspaceId, scopes, createdAt, expiresAt },
      { id: userId },
      [{ id: workspaceId, name: 'Mine', role: 'viewer' }],
      null,
    ],
  );
  const first = await server.client.me({ limit: 1 });
  assert.deepEqual([first.workspaces.length, first.nextCursor], [1, first.workspaces[0]!.id]);
  await owner.accessTokens.delete(id);
  const nobody = server.clientOf({ token: bound.token, workspaceId });
  assert.equal(await refusalOf(nobody.me()), '401 unauthenticated');
});

test('lists of a session include the outputs of runs by default, and the list of the workspace omits them', async () => {
  const { client } = server;
  const notebook = await openNotebook(server, { a: '7' });
  const run = await notebook.run(['a']);
  assert.notEqual(run.output, null);
  const without = { ...run, output: null, outputOmitted: true };
  const of = { sessionId: notebook.id };
  assert.deepEqual((await client.executions.list(notebook.id)).items, [run]);
  assert.deepEqual((await client.executions.list(notebook.id, { include: 'none' })).items, [without]);
  assert.deepEqual((await client.runs.list(of)).items, [without]);
  assert.deepEqual((await client.runs.list({ ...of, include: 'output' })).items, [run]);
  await notebook.close();
});
