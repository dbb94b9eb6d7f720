/** The same member has the same name in all resources. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const { user } = await client.me();

await client.members.create({ userId: 'ed', role: 'editor' });
const { token } = await client.accessTokens.create({
  name: 'ed',
  userId: 'ed',
  scopes: ['workspaceRuntime:connect', 'datasource:read'],
});
const editor = server.clientOf({ token, workspaceId: OWNER.workspaceId });

test('notebooks, runs, conversations and datasources name their creator, also after others have changed them', async () => {
  const made = await editor.notebooks.create({ title: 'Theirs' });
  assert.equal(made.createdBy, 'ed');
  const { id, updatedAt } = made;
  const changed = await client.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'Ours' });
  assert.equal(changed.createdBy, 'ed');
  const { items } = await client.notebooks.list();
  assert.equal(items.find((notebook) => notebook.id === id)?.createdBy, 'ed');

  const imported = await editor.notebooks.import({ format: 'py', content: 'x = 1\n' });
  assert.equal(imported.createdBy, 'ed');

  const notebook = await openNotebook(server, { a: '1' });
  const { runId } = await editor.executions.submit(notebook.id, { type: 'all' });
  assert.equal((await client.waitForRun(runId)).createdBy, 'ed');
  assert.equal((await notebook.run(['a'])).createdBy, user.id);

  const { environmentId } = notebook;
  const agent = await editor.agentSessions.open({ environmentId });
  assert.deepEqual([agent.createdBy, agent.ownerId], ['ed', 'ed']);
  await notebook.close();

  const datasource = await editor.datasources.create({
    slug: 'made',
    connection: { kind: 'sqlite', path: 'made.sqlite' },
  });
  assert.equal(datasource.createdBy, 'ed');
  assert.equal(datasource.updatedAt, datasource.createdAt);
  const replaced = await client.datasources.replace('made', {
    connection: { kind: 'sqlite', path: 'made.sqlite' },
  });
  assert.equal(replaced.createdBy, 'ed');
  assert.equal(replaced.createdAt, datasource.createdAt);
  assert.ok(replaced.updatedAt >= datasource.updatedAt);
});

test('grants, audit entries and files use the same member names as other resources', async () => {
  await client.datasources.create({ slug: 'shared', connection: { kind: 'sqlite', path: 's.sqlite' } });
  const grant = await client.datasources.grant('shared', 'role:viewer');
  assert.equal(grant.createdBy, user.id);
  const [entry] = (await client.audit({ order: 'desc' })).items;
  assert.equal(typeof entry?.createdAt, 'string');
  const file = await client.files.put('notes.txt', Buffer.from('12345'));
  assert.equal(file.bytes, 5);
});

test('a list without outputs marks them as omitted, so that null otherwise means no output', async () => {
  const notebook = await openNotebook(server, { a: "print('x' * 10_000)\n1" });
  const run = await notebook.run(['a']);
  assert.equal('outputOmitted' in run, false);
  const [listed] = (await client.runs.list({ sessionId: notebook.id })).items;
  assert.deepEqual([listed?.output, listed?.outputOmitted], [null, true]);
  const [whole] = (await client.runs.list({ sessionId: notebook.id, include: 'output' })).items;
  assert.deepEqual([whole?.output, whole?.outputOmitted], [run.output, undefined]);
  await notebook.close();
});
