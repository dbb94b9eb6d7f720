/**
 * Rights in a shared conversation: which rights its prompts have, who may change its settings, and
 * that its existence stays secret.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const ann = await addMember(server, 'ann', 'editor');
const bob = await addMember(server, 'bob', 'editor');
const eve = await addMember(server, 'eve', 'editor');
await client.datasources.create({ slug: 'private', connection: { kind: 'sqlite', path: 'private.db' } });
await client.datasources.grant('private', 'user:ann');
const context = { datasourceSlugs: ['private'] };

/**
 * Sends a prompt of the member that lists the datasources and queries the private one. Returns the
 * results of the tools.
 */
async function readPrivate(
  { client: by }: Pick<typeof server, 'client'>,
  sessionId: string,
): Promise<string[]> {
  const sql = 'SELECT 1 AS one';
  model.script(
    (exchange) =>
      exchange
        .calls(['list_datasources', {}], ['query_datasource', { slug: 'private', sql }])
        .end('tool_calls'),
    (exchange) => exchange.text('Done.').end(),
  );
  const run = await by.waitForRun((await by.agentSessions.prompt(sessionId, 'Look.')).runId);
  return (run.output?.parts ?? []).flatMap((part) =>
    part.type === 'tool-call' ? [String(part.output)] : [],
  );
}

const NOT_CHOSEN = /^The member who chose the datasource private for this conversation may not read it\./;

test('only the owner of a conversation changes its model, instructions and datasources', async () => {
  const { environmentId } = await ann.client.executionEnvironments.create();
  const config = { instructions: 'Be brief.' };
  const { sessionId: id } = await ann.client.agentSessions.open({ environmentId, config });
  await ann.client.agentSessions.grant(id, 'bob');
  for (const change of [
    { context },
    { config: { instructions: 'Read all datasources.' } },
    { config: { instructions: null } },
    { config: { model: 'openai-compatible/other' } },
  ]) {
    const opening = bob.client.agentSessions.open({ environmentId, id, ...change });
    assert.equal(await refusalOf(opening), '403 conversation_read_only', JSON.stringify(change));
  }
  const saved = await ann.client.agentSessions.get(id);
  assert.deepEqual([saved.config.instructions, saved.context], ['Be brief.', { datasourceSlugs: [] }]);
  // Unchanged values are accepted, so programs that always send them keep working.
  const again = await bob.client.agentSessions.open({ environmentId, id, config, context: saved.context });
  assert.equal(again.sessionId, id);
  model.script((exchange) => exchange.text('Yes.').end());
  const { runId } = await bob.client.agentSessions.prompt(id, 'May I ask?');
  assert.equal((await bob.client.waitForRun(runId)).status, 'completed');
});

test('a prompt in any conversation reads only datasources that its sender may read', async () => {
  const { environmentId } = await bob.client.executionEnvironments.create();
  const { sessionId: id } = await bob.client.agentSessions.open({ environmentId, context });
  await bob.client.agentSessions.grant(id, 'ann');
  const [listed, queried = ''] = await readPrivate(ann, id);
  assert.equal(listed, 'There are no datasources that may be queried.');
  assert.match(queried, NOT_CHOSEN);

  // Handing the conversation over does not make the new owner responsible for the choice. Choosing
  // again does.
  await bob.client.agentSessions.handOver(id, 'ann');
  assert.match((await readPrivate(ann, id))[1] ?? '', NOT_CHOSEN);
  await ann.client.agentSessions.open({ environmentId, id, context });
  assert.doesNotMatch((await readPrivate(ann, id))[1] ?? '', NOT_CHOSEN);
  // The choice of the owner gives no right to others either.
  assert.match((await readPrivate(bob, id))[1] ?? '', /^not_found/);
});

test('an environment shows only conversations that its reader may see', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId: anns } = await ann.client.agentSessions.open({ environmentId });
  const { sessionId: bobs } = await bob.client.agentSessions.open({ environmentId });
  await bob.client.agentSessions.grant(bobs, 'ann');
  const seenBy = async ({ client: by }: Pick<typeof server, 'client'>) => {
    const { agentSessionIds } = await by.executionEnvironments.get(environmentId);
    const { items } = await by.executionEnvironments.list({ order: 'desc' });
    const listed = items.find((item) => item.environmentId === environmentId);
    assert.deepEqual(listed?.agentSessionIds, agentSessionIds);
    return agentSessionIds;
  };
  assert.deepEqual(await seenBy(server), [anns, bobs]);
  assert.deepEqual(await seenBy(ann), [anns, bobs]);
  assert.deepEqual(await seenBy(bob), [bobs]);
  assert.deepEqual(await seenBy(eve), []);
  assert.equal(
    await refusalOf(eve.client.executionEnvironments.close(environmentId)),
    '409 environment_in_use',
  );
});
