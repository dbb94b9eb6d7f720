import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { cellsOf, openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { notebooks } = client;
const bob = await addMember(server, 'bob', 'editor');
const vera = await addMember(server, 'vera', 'viewer');
const { user: me } = await client.me();

const NOT_FOUND = '404 not_found';
const codes = (code: string) => ({ serialization: { cells: cellsOf({ a: code }) } });

test('the versions of a notebook show the author and the time of each change, and each version can be read', async () => {
  const made = await notebooks.create({ title: 'Sales', ...codes('1') });
  const changed = await bob.client.notebooks.update(made.id, {
    expectedUpdatedAt: made.updatedAt,
    title: 'Costs',
    ...codes('2'),
  });
  assert.equal(changed.updatedBy, 'bob');
  assert.deepEqual(await vera.client.notebooks.versions(made.id), [
    { updatedAt: changed.updatedAt, updatedBy: 'bob', title: 'Costs', cellCount: 1, isCurrent: true },
    { updatedAt: made.updatedAt, updatedBy: me.id, title: 'Sales', cellCount: 1, isCurrent: false },
  ]);
  assert.deepEqual(await vera.client.notebooks.version(made.id, made.updatedAt), made);
  assert.deepEqual(await vera.client.notebooks.version(made.id, changed.updatedAt), changed);
  const { items } = await notebooks.list({ order: 'desc', limit: 1 });
  assert.deepEqual([items[0]?.id, items[0]?.updatedBy], [made.id, 'bob']);
});

test('a restored notebook has the title, cells, datasources, variables and metadata of the version, and keeps its secrets', async () => {
  const made = await notebooks.create({
    title: 'Sales',
    datasourceSlugs: ['sales'],
    variables: { REGION: 'eu' },
    metadata: { project: 'sales' },
    ...codes('1'),
  });
  await notebooks.setSecret(made.id, 'TOKEN', 'x');
  const changed = await bob.client.notebooks.update(made.id, {
    expectedUpdatedAt: made.updatedAt,
    title: null,
    datasourceSlugs: [],
    variables: {},
    metadata: {},
    ...codes('2'),
  });
  const restored = await notebooks.restore(made.id, made.updatedAt, { expectedUpdatedAt: changed.updatedAt });
  const { updatedAt, ...content } = restored;
  assert.ok(updatedAt > changed.updatedAt);
  const { updatedAt: _, ...before } = made;
  assert.deepEqual(content, before);
  assert.deepEqual(await notebooks.get(made.id), restored);
  assert.deepEqual(
    (await notebooks.secrets(made.id)).map(({ name }) => name),
    ['TOKEN'],
  );
  // The state that was replaced is a version, too.
  const [, replaced] = await notebooks.versions(made.id);
  assert.deepEqual([replaced?.updatedAt, replaced?.updatedBy], [changed.updatedAt, 'bob']);
});

test('a version is not restored for viewers, while a session is open, or after a change that the caller has not read', async () => {
  const made = await notebooks.create(codes('1'));
  const changed = await bob.client.notebooks.update(made.id, {
    expectedUpdatedAt: made.updatedAt,
    ...codes('2'),
  });
  const restoreAs = (who: typeof client, expectedUpdatedAt: string) =>
    refusalOf(who.notebooks.restore(made.id, made.updatedAt, { expectedUpdatedAt }));
  assert.equal(await restoreAs(vera.client, changed.updatedAt), '403 role_too_low');
  assert.equal(await restoreAs(client, made.updatedAt), '409 stale_update');
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: made.id, environmentId });
  assert.equal(await restoreAs(client, changed.updatedAt), '409 session_open');
});

test('a missing version, or a version of another notebook, is not found', async () => {
  const one = await notebooks.create(codes('1'));
  const other = await notebooks.create(codes('2'));
  const foreign = server.clientOf(await server.stranger());
  for (const version of [
    '2026-01-01T00:00:00.000Z',
    'no time',
    '__proto__',
    `${other.updatedAt}0`,
    'x'.repeat(1900),
  ]) {
    assert.equal(await refusalOf(notebooks.version(one.id, version)), NOT_FOUND, version);
    const restoring = notebooks.restore(one.id, version, { expectedUpdatedAt: one.updatedAt });
    assert.equal(await refusalOf(restoring), NOT_FOUND);
  }
  assert.equal(await refusalOf(foreign.notebooks.versions(one.id)), NOT_FOUND);
  assert.equal(await refusalOf(foreign.notebooks.version(one.id, one.updatedAt)), NOT_FOUND);
  assert.equal(await refusalOf(notebooks.versions('nb_nothing')), NOT_FOUND);
});

test("another person's run or code that changes an open notebook makes a version in that person's name", async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const run = await bob.client.executions.submit(notebook.id, {
    type: 'cells',
    cells: [{ cellId: 'a', code: '2' }],
  });
  await bob.client.waitForRun(run.runId);
  const code =
    'import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    ctx.create_cell("3")';
  assert.equal((await client.code.execute(notebook.id, code)).success, true);
  const versions = await notebooks.versions(notebook.id);
  assert.deepEqual(
    versions.map(({ updatedBy, cellCount }) => [updatedBy, cellCount]),
    [
      [me.id, 2],
      ['bob', 1],
      [me.id, 1],
    ],
  );
});
