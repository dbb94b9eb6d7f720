import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type Caller, sendRaw } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client, owner } = server;
const [ann, bob] = await Promise.all([
  addMember(server, 'ann', 'editor'),
  addMember(server, 'bob', 'editor'),
]);

/** Sends a POST with an idempotency key. Returns the status, the code of a refusal, and whether it is a recorded answer. */
async function post(by: Caller, path: string, body: object, key: string) {
  const headers = { 'idempotency-key': key };
  const answer = await sendRaw(server.baseUrl, 'POST', path, by, { body, headers });
  const outcome = Object(answer.body).code ?? answer.status;
  return answer.headers['idempotency-replayed'] === 'true' ? `${outcome} replayed` : outcome;
}

test("the key and body of one member never get another member's recorded answer", async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const path = '/api/v3/agent-sessions';
  assert.equal(await post(ann, path, { environmentId }, 'same'), 201);
  assert.equal(await post(ann, path, { environmentId }, 'same'), '201 replayed');
  assert.equal(await post(bob, path, { environmentId }, 'same'), 201);
  const [annsOwn, bobsOwn] = await Promise.all(
    [ann, bob].map(async (member) => (await member.client.agentSessions.list()).items),
  );
  assert.deepEqual(
    [annsOwn, bobsOwn].map((items) => items?.map(({ ownerId }) => ownerId)),
    [['ann'], ['bob']],
  );
});

test('a member that has lost access to a conversation gets no recorded answer about the conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  await client.agentSessions.grant(sessionId, 'ann');
  await client.agentSessions.handOver(sessionId, 'ann');
  model.script((exchange) => exchange.text('Yes.').end());
  const prompts = `/api/v3/agent-sessions/${sessionId}/runs`;
  assert.equal(await post(ann, prompts, { prompt: 'Well?' }, 'k'), 202);
  const [run] = (await ann.client.agentSessions.listRuns(sessionId)).items;
  assert.ok(run);
  await ann.client.waitForRun(run.id);
  let pending: () => void = () => {};
  model.script((exchange) => {
    pending = () => exchange.end();
  });
  const { runId } = await ann.client.agentSessions.prompt(sessionId, 'And now?');
  const requests: [string, object, number][] = [
    ['/api/v3/agent-sessions', { environmentId, id: sessionId }, 200],
    [`/api/v3/agent-sessions/${sessionId}/grants`, { userId: 'bob' }, 201],
    [`/api/v3/runs/${runId}/cancel`, {}, 202],
  ];
  for (const [path, body, status] of requests) {
    assert.equal(await post(ann, path, body, 'k'), status, path);
    assert.equal(await post(ann, path, body, 'k'), `${status} replayed`, path);
  }
  pending();
  await ann.client.waitForRun(runId);
  await client.agentSessions.handOver(sessionId, 'bob');
  await bob.client.agentSessions.revoke(sessionId, 'ann');
  for (const [path, body] of [...requests, [prompts, { prompt: 'Well?' }] as const]) {
    assert.equal(await post(ann, path, body, 'k'), 'not_found', path);
  }
});

test('a member who has lost a grant of a datasource gets no recorded answer about the datasource', async () => {
  const connection = { kind: 'sqlite', path: 'x.db' };
  await client.datasources.create({ slug: 'shared', connection });
  await client.datasources.grant('shared', 'user:ann');
  const path = '/api/v3/datasources/shared/grants';
  const body = { subject: 'user:bob' };
  assert.equal(await post(ann, path, body, 'k'), 201);
  assert.equal(await post(ann, path, body, 'k'), '201 replayed');
  await client.datasources.revoke('shared', 'user:ann');
  assert.equal(await post(ann, path, body, 'k'), 'not_found');
  assert.equal(await post(ann, '/api/v3/datasources/shared/test', {}, 'k'), 'not_found');
});

test('an owner demoted to editor gets no recorded token of another member', async () => {
  const carl = await addMember(server, 'carl', 'owner');
  const body = { name: 'for bob', userId: 'bob', scopes: ['workspaceRuntime:connect'] };
  assert.equal(await post(carl, '/api/v3/access-tokens', body, 'k'), 201);
  assert.equal(await post(carl, '/api/v3/access-tokens', body, 'k'), '201 replayed');
  await client.members.update('carl', { role: 'editor' });
  assert.equal(await post(carl, '/api/v3/access-tokens', body, 'k'), 'role_too_low');
});

test('a bound token does not get the recorded answer of an operation for unbound tokens', async () => {
  const free: Caller = owner;
  const { token } = await client.accessTokens.create({
    name: 'w',
    userId: 'ann',
    scopes: ['workspace:manage'],
  });
  await client.members.update('ann', { role: 'owner' });
  const bound = { token, workspaceId: owner.workspaceId };
  for (const [path, body, status] of [
    ['/api/v3/workspaces', { name: 'w' }, 201],
    ['/api/v3/keys', {}, 200],
    ['/api/v3/keys/rotate', {}, 200],
  ] as const) {
    assert.equal(await post(free, path, body, 'k'), status, path);
    assert.equal(await post(free, path, body, 'k'), `${status} replayed`, path);
    assert.equal(await post(bound, path, body, 'k'), 'missing_scope', path);
  }
  await client.members.update('ann', { role: 'editor' });
});

test('the idempotency key of a request for a notebook session works only for its sender', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const path = `/api/v3/notebook-sessions/${notebook.id}/executions`;
  const body = { type: 'all' };
  assert.equal(await post(ann, path, body, 'k'), 202);
  const [first] = (await client.executions.list(notebook.id)).items;
  await client.waitForRun(first!.id);
  assert.equal(await post(ann, path, body, 'k'), '202 replayed');
  assert.equal(await post(bob, path, body, 'k'), 202);
  assert.equal((await client.executions.list(notebook.id)).items.length, 2);
});
