import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { AgentLog } from '#test/support/agent-log.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const [ann, bob, eve] = await Promise.all([
  addMember(server, 'ann', 'editor'),
  addMember(server, 'bob', 'editor'),
  addMember(server, 'eve', 'editor'),
]);

/** Opens a notebook whose conversation belongs to Ann and has one prompt with its answer. */
async function annsNotebook() {
  const notebook = await openNotebook(server, { a: '1' });
  const { environmentId, id } = notebook;
  const open = (by: Client) => by.agentSessions.open({ environmentId, notebookSessionId: id });
  await open(ann.client);
  model.script((exchange) => exchange.text('The password is canary-1f.').end());
  const { runId } = await ann.client.agentSessions.prompt(id, 'What is the password?');
  await ann.client.waitForRun(runId);
  return { ...notebook, id, environmentId, open, runId };
}

test('an editor who binds the notebook conversation of another member gets an error that names only the owner', async () => {
  const { id, open, runId } = await annsNotebook();
  const before = await client.agentSessions.get(id);
  const problem = await problemOf(open(bob.client));
  assert.deepEqual([problem.status, problem.code], [403, 'conversation_not_shared']);
  assert.match(problem.message, /belongs to ann\. Ask them, or an owner of the workspace, to share it/);
  const { requestId: _, ...shown } = Object(problem.body);
  assert.deepEqual(Object.keys(shown).sort(), [
    'code',
    'detail',
    'instance',
    'ownerId',
    'status',
    'title',
    'type',
  ]);
  assert.equal(shown.ownerId, 'ann');
  assert.equal(JSON.stringify(problem.body).includes('canary'), false);
  assert.equal(await refusalOf(bob.client.agentSessions.get(id)), '404 not_found');
  assert.equal(await refusalOf(bob.client.agentSessions.listRuns(id)), '404 not_found');
  assert.equal(await refusalOf(bob.client.runs.get(runId)), '404 not_found');
  assert.deepEqual(await client.agentSessions.get(id), before);
});

test('a request that names a private conversation as a notebook session does not reveal the conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await ann.client.agentSessions.open({ environmentId });
  const bind = (notebookSessionId: string) =>
    refusalOf(bob.client.agentSessions.open({ environmentId, notebookSessionId }));
  assert.deepEqual([await bind(sessionId), await bind('conv_never')], ['404 not_found', '404 not_found']);
});

test('opening a private conversation by its id is refused like an unknown conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await ann.client.agentSessions.open({ environmentId });
  const never = sessionId.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  for (const member of ['id', 'notebookSessionId']) {
    const [real, none] = await Promise.all(
      [sessionId, never].map(async (id) => {
        const { body, status } = await problemOf(
          bob.client.agentSessions.open({ environmentId, [member]: id }),
        );
        return { ...Object(body), status, requestId: '' };
      }),
    );
    assert.deepEqual(real, none);
    assert.deepEqual([real.status, real.errors[0].path], [404, `/${member}`]);
  }
});

test('an owner of the workspace shares the conversation of a notebook, also with themselves', async () => {
  const { id, open } = await annsNotebook();
  assert.equal(await refusalOf(open(client)), '403 conversation_read_only');
  await client.agentSessions.grant(id, 'bob');
  assert.equal((await open(bob.client)).entries.length, 2);
  assert.equal(await refusalOf(bob.client.agentSessions.grant(id, 'eve')), '403 conversation_read_only');
  await client.agentSessions.grant(id, 'owner');
  assert.equal((await open(client)).ownerId, 'ann');
  await client.agentSessions.revoke(id, 'bob');
  assert.equal(await refusalOf(open(bob.client)), '403 conversation_not_shared');
});

test('a conversation that is handed over belongs to the new owner, and the former owner can still use it', async () => {
  const { id, open } = await annsNotebook();
  assert.equal(await refusalOf(bob.client.agentSessions.handOver(id, 'bob')), '404 not_found');
  assert.equal(await refusalOf(ann.client.agentSessions.handOver(id, 'nobody')), '400 invalid_request');
  const handedOver = await ann.client.agentSessions.handOver(id, 'bob');
  assert.equal(handedOver.ownerId, 'bob');
  assert.equal((await open(bob.client)).ownerId, 'bob');
  assert.equal((await open(ann.client)).ownerId, 'bob');
  assert.equal(await refusalOf(ann.client.agentSessions.grant(id, 'eve')), '403 conversation_read_only');
  await bob.client.agentSessions.grant(id, 'eve');
  await bob.client.agentSessions.revoke(id, 'ann');
  assert.equal(await refusalOf(ann.client.agentSessions.get(id)), '404 not_found');
  assert.equal((await eve.client.agentSessions.get(id)).entries.length, 2);
});

test('the stream of a conversation ends for callers who lose the right to read, and continues for other callers', async () => {
  const { id } = await annsNotebook();
  await client.agentSessions.grant(id, 'bob');
  const [anns, bobs, owners] = await Promise.all(
    [ann.client, bob.client, client].map((by) => AgentLog.open(by, id)),
  );
  await client.agentSessions.revoke(id, 'bob');
  model.script((exchange) => exchange.text('A secret.').end());
  const { runId } = await ann.client.agentSessions.prompt(id, 'Another?');
  await Promise.all([anns!.over(runId), owners!.over(runId)]);
  assert.equal(bobs!.text(), '');
  await assert.rejects(bobs!.ended, { status: 404 });
  await anns![Symbol.asyncDispose]();
  await owners![Symbol.asyncDispose]();
});

test('an owner of the workspace hands over a closed conversation, which its new owner opens again', async () => {
  const { id, open } = await annsNotebook();
  await ann.client.agentSessions.close(id);
  await client.members.delete('ann');
  assert.equal(await refusalOf(open(bob.client)), '403 conversation_not_shared');
  const { status, ownerId } = await client.agentSessions.handOver(id, 'bob');
  assert.deepEqual([status, ownerId], ['closed', 'bob']);
  assert.equal((await open(bob.client)).status, 'ready');
  assert.deepEqual((await client.agentSessions.grants(id)).items, []);
  const { items } = await client.audit({ limit: 100 });
  const noted = items.filter(({ action, target }) => action === 'conversation.hand-over' && target === id);
  assert.deepEqual(
    noted.map(({ userId, detail }) => [userId, detail]),
    [['owner', 'user:bob']],
  );
  await client.members.create({ userId: 'ann', role: 'editor' });
});

test('the owner of a conversation survives a restart and a change of its configuration', async (t) => {
  const first = await startServer(t);
  const { token, workspaceId } = await addMember(first, 'zoe', 'editor');
  const { environmentId } = await first.client.executionEnvironments.create();
  const { sessionId } = await first.client.agentSessions.open({ environmentId });
  await first.client.agentSessions.handOver(sessionId, 'zoe');
  const second = await first.restart();
  const config = { instructions: 'Be brief.' };
  const zoe = second.clientOf({ token, workspaceId });
  const again = await zoe.agentSessions.open({ environmentId, id: sessionId, config });
  assert.deepEqual([again.ownerId, again.config.instructions], ['zoe', 'Be brief.']);
});
