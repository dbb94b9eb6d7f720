/** `metadata` of notebooks, sessions and runs, and the lists that are filtered by it. */
import assert from 'node:assert/strict';
import test from 'node:test';
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
const METADATA = { project: 'sales=2026', 'ticket.id': '7' };

test('metadata of a notebook is set at its creation, replaced by PATCH, shown, and filters the list', async () => {
  const created = await client.notebooks.create({ metadata: METADATA });
  const plain = await client.notebooks.create({});
  assert.deepEqual([created.metadata, plain.metadata], [METADATA, undefined]);
  const ids = async (metadata: string) =>
    (await client.notebooks.list({ metadata })).items.map(({ id, metadata: shown }) => [id, shown]);
  assert.deepEqual(await ids('project=sales=2026'), [[created.id, METADATA]]);
  assert.deepEqual(await ids('project=sales'), [], 'the whole value is compared');
  assert.deepEqual(await ids('toString='), []);
  const change = { expectedUpdatedAt: created.updatedAt };
  const renamed = await client.notebooks.update(created.id, { ...change, title: 'Sales' });
  assert.deepEqual(renamed.metadata, METADATA, 'another change leaves it');
  const next = { expectedUpdatedAt: renamed.updatedAt, metadata: { owner: 'ada' } };
  const changed = await client.notebooks.update(created.id, next);
  assert.deepEqual(changed.metadata, { owner: 'ada' });
  assert.deepEqual(await client.notebooks.get(created.id), changed);
  assert.deepEqual(await ids('project=sales=2026'), []);
  const none = await client.notebooks.update(created.id, {
    expectedUpdatedAt: changed.updatedAt,
    metadata: {},
  });
  assert.equal(none.metadata, undefined);
});

test('metadata of a session is set when it is opened, shown, and filters the list', async () => {
  const { id } = await client.notebooks.create({});
  const { environmentId } = await client.executionEnvironments.create();
  const open = { notebookId: id, environmentId };
  assert.deepEqual((await client.notebookSessions.open({ ...open, metadata: METADATA })).metadata, METADATA);
  assert.deepEqual((await client.notebookSessions.get(id)).metadata, METADATA);
  const found = async (metadata: string) => (await client.notebookSessions.list({ metadata })).items;
  assert.deepEqual(
    (await found('ticket.id=7')).map(({ sessionId, metadata }) => [sessionId, metadata]),
    [[id, METADATA]],
  );
  assert.deepEqual(await found('ticket.id=8'), []);
  await client.notebookSessions.close(id);
  assert.equal((await client.notebookSessions.open(open)).metadata, undefined);
  await client.notebookSessions.close(id);
});

test('metadata of executions and prompts is shown in their runs, and filters the lists of runs', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const run = await notebook.run({ type: 'all', metadata: METADATA });
  assert.deepEqual([run.metadata, run.input], [METADATA, { type: 'all' }]);
  await notebook.run(['a']);
  const { sessionId } = await client.agentSessions.open({ environmentId: notebook.environmentId });
  model.script((exchange) => exchange.text('Yes.').end());
  const prompted = await client.agentSessions.ask(sessionId, 'Fine?', { metadata: METADATA });
  assert.ok('input' in prompted);
  assert.deepEqual([prompted.metadata, prompted.input], [METADATA, { prompt: 'Fine?' }]);
  const idsOf = ({ items }: { readonly items: readonly { readonly id: string }[] }) =>
    items.map(({ id }) => id);
  const metadata = 'project=sales=2026';
  assert.deepEqual(idsOf(await client.runs.list({ metadata })), [run.id, prompted.id]);
  assert.deepEqual(idsOf(await client.executions.list(notebook.id, { metadata })), [run.id]);
  assert.deepEqual(idsOf(await client.agentSessions.listRuns(sessionId, { metadata })), [prompted.id]);
  assert.deepEqual(idsOf(await client.executions.list(notebook.id, { metadata: 'project=other' })), []);
  await notebook.close();
});

test('metadata has up to 16 pairs, with keys of up to 64 characters and values of up to 500 characters', async () => {
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`key${n}`, '']));
  for (const metadata of [pairs(16), { ['k'.repeat(64)]: 'v'.repeat(500) }, { 'a.b_c-d': '' }])
    assert.deepEqual((await client.notebooks.create({ metadata })).metadata, metadata);
  const wrong = [
    pairs(17),
    { ['k'.repeat(65)]: '' },
    { k: 'v'.repeat(501) },
    { '': '' },
    { 'a b': '' },
    { '.a': '' },
  ];
  for (const metadata of wrong)
    assert.equal(
      await refusalOf(client.notebooks.create({ metadata })),
      '400 invalid_request',
      JSON.stringify(metadata),
    );
  for (const metadata of ['project', '=x', 'a b=c'])
    assert.equal(await refusalOf(client.notebooks.list({ metadata })), '400 invalid_request', metadata);
});
