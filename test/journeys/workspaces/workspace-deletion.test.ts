import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { openStore } from '#storage/open-store.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { hookReceiver } from '#test/support/stand-ins/hook-receiver.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test);
const { client } = server;

async function workspaceOf(on: Client, clientOf: (workspaceId: string) => Client) {
  const { id } = await on.workspaces.create({ name: 'Doomed' });
  return { id, inside: clientOf(id) };
}

const here = (workspaceId: string) => server.clientOf({ token: OWNER.token, workspaceId });
const on = ({ baseUrl }: ChildServer, accessToken: string, workspaceId: string) =>
  createClient({ baseUrl, accessToken, workspaceId });

test('only owners of a workspace can delete it, and nobody can delete their last workspace', async () => {
  const { id, inside } = await workspaceOf(client, here);
  const editor = await addMember(server, 'ed', 'editor');
  assert.equal(await refusalOf(editor.client.workspaces.delete(OWNER.workspaceId)), '403 role_too_low');
  await inside.members.create({ userId: 'vera', role: 'viewer' });
  const { token } = await inside.accessTokens.create({
    name: 'of vera',
    userId: 'vera',
    scopes: ['workspace:manage'],
  });
  const vera = server.clientOf({ token, workspaceId: id });
  assert.equal(await refusalOf(vera.workspaces.delete(id)), '403 role_too_low');
  await inside.members.create({ userId: 'olga', role: 'owner' });
  const { token: hers } = await inside.accessTokens.create({
    name: 'of olga',
    userId: 'olga',
    scopes: ['workspace:manage'],
  });
  const olga = server.clientOf({ token: hers, workspaceId: id });
  assert.equal(await refusalOf(olga.workspaces.delete(OWNER.workspaceId)), '404 not_found');
  assert.equal(await refusalOf(olga.workspaces.delete(id)), '409 last_workspace');
  assert.equal(await refusalOf(client.workspaces.delete('ws_nowhere')), '404 not_found');
  await client.workspaces.delete(id);
});

test('a workspace is not deleted while it has an open session of a notebook or an agent', async () => {
  const { id, inside } = await workspaceOf(client, here);
  const { environmentId } = await inside.executionEnvironments.create();
  const { sessionId } = await inside.agentSessions.open({ environmentId });
  assert.equal(await refusalOf(client.workspaces.delete(id)), '409 workspace_in_use');
  await inside.agentSessions.close(sessionId);
  const notebook = await openNotebook({ client: inside }, { a: '1' });
  assert.equal(await refusalOf(client.workspaces.delete(id)), '409 workspace_in_use');
  await notebook.close();
  await client.workspaces.delete(id);
  assert.equal(await refusalOf(inside.notebooks.get(notebook.id)), '404 not_found');
});

test('a deleted workspace is gone at once for everybody, with the tokens bound to it, and the audit records it', async () => {
  const { id, inside } = await workspaceOf(client, here);
  await inside.members.create({ userId: 'mia', role: 'editor' });
  const { token } = await inside.accessTokens.create({
    name: 'of mia',
    userId: 'mia',
    scopes: ['workspaceRuntime:connect'],
  });
  const mia = server.clientOf({ token, workspaceId: id });
  assert.deepEqual((await mia.notebooks.list()).items, []);
  const calls = Array.from({ length: 20 }, () => client.workspaces.delete(id));
  assert.deepEqual(await tally(calls), { ok: 1, '404 not_found': 19 });
  assert.equal(await refusalOf(mia.notebooks.list()), '401 unauthenticated');
  assert.equal(await refusalOf(mia.me()), '401 unauthenticated');
  assert.equal(await refusalOf(inside.notebooks.create()), '404 not_found');
  assert.equal(await refusalOf(client.workspaces.get(id)), '404 not_found');
  const { workspaces } = await client.me();
  assert.equal(
    workspaces.some((one) => one.id === id),
    false,
  );
  assert.equal(
    (await client.workspaces.list()).items.some((one) => one.id === id),
    false,
  );
  const { items } = await client.audit({ action: 'workspace.delete', target: id });
  assert.deepEqual(
    items.map(({ userId, outcome }) => [userId, outcome]),
    [['owner', 'done']],
  );
});

test('deleting a workspace deletes all its records and none of its files, even when the server is killed', async (t) => {
  const first = await startChildServer(t, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
  const { id, inside } = await workspaceOf(first.client, (one) => on(first, OWNER.token, one));
  const notebook = await openNotebook(
    { client: inside },
    { mo: 'import marimo as mo', a: 'mo.Html("x" * 100_000)' },
  );
  await notebook.run([]);
  const { environmentId, id: notebookSessionId } = notebook;
  const config = { model: 'openai-compatible/scripted' };
  await inside.agentSessions.open({ environmentId, notebookSessionId, config });
  model.script((exchange) => exchange.text('Forty-two.').end());
  await inside.agentSessions.ask(notebookSessionId, 'What is the answer?');
  await notebook.close();
  await inside.datasources.create({ slug: 'files', connection: { kind: 'duckdb', path: 'a.duckdb' } });
  await inside.models.setKey('openai', 'a-key-of-the-workspace');
  await inside.members.create({ userId: 'mia', role: 'editor' });
  await inside.accessTokens.create({ name: 'of mia', userId: 'mia', scopes: ['workspaceRuntime:connect'] });
  for (let i = 0; i < 150; i++) await inside.notebooks.create({}, { idempotencyKey: `key-${i}` });
  const file = join(first.dataDir, 'workspaces', id, 'files', 'kept.csv');
  writeFileSync(file, 'a,b');

  await first.client.workspaces.delete(id);
  await first.end('SIGKILL');
  const second = await first.again();
  assert.equal(await refusalOf(on(second, OWNER.token, id).notebooks.list()), '404 not_found');
  await second.end('SIGTERM');

  const store = await openStore(`${first.dataDir}/store`, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  assert.deepEqual([...store.listPartition(id, 10)], []);
  const elsewhere = [...store.listPartition('*', 10_000)].filter(
    (key) => key.includes(id) && key[1] !== 'receipt-expiry',
  );
  assert.deepEqual(elsewhere, [], 'nothing of it lies elsewhere, but when idempotency records expire');
  const kinds = [...store.listPartition('*', 10_000)].map(([, kind]) => kind);
  assert.equal(
    kinds.filter((kind) => kind === 'access-token').length,
    1,
    'only the token of the owner is left',
  );
  assert.equal(readFileSync(file, 'utf8'), 'a,b');
});

test('a deleted workspace leaves no record of its hooks, and nothing at the addresses of the hooks that fired its jobs', async (t) => {
  const receiver = await hookReceiver(t);
  const first = await startChildServer(t);
  const { id, inside } = await workspaceOf(first.client, (one) => on(first, OWNER.token, one));
  const hook = await inside.hooks.create({ url: receiver.url, events: ['run.completed'] });
  await inside.hooks.test(hook.id);
  const notebook = await inside.notebooks.create({ serialization: { cells: [{ cell_id: 'c', code: '1' }] } });
  const job = await inside.jobs.create({
    target: { notebookId: notebook.id },
    schedule: { cron: '@yearly' },
    retries: 0,
  });
  const hookIn = await inside.hooksIn.create(job.id);
  const fire = () =>
    fetch(`${first.baseUrl}${hookIn.url}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hookIn.secret}`, 'webhook-id': 'once' },
    });
  assert.equal((await fire()).status, 202);
  await eventually('the test and the end of the run have arrived', () => receiver.received.length === 2);
  await eventually('nothing waits', async () => (await inside.hooks.get(hook.id)).pending === 0);
  await eventually('the job waits', async () => (await inside.jobs.get(job.id)).status === 'waiting');

  // Places far in the future, and conditions.
  const schedule = { cron: '@yearly' };
  const idleJob = await inside.jobs.create({ target: { notebookId: notebook.id }, schedule, paused: true });
  const idleHook = await inside.hooks.create({ url: receiver.url, events: ['run.completed'], paused: true });
  receiver.answer((response) => response.writeHead(503).end());
  const retrying = await inside.hooks.create({ url: receiver.url, events: ['run.completed'] });
  await inside.hooks.test(retrying.id);
  await eventually(
    'the delivery waits for its next attempt',
    async () => (await inside.hooks.get(retrying.id)).status === 'backing-off',
  );

  await first.client.workspaces.delete(id);
  await eventually('the hook is unknown', async () => (await fire()).status === 401);
  await first.end('SIGTERM');
  const store = await openStore(`${first.dataDir}/store`, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  assert.deepEqual([...store.listPartition(id, 10)], []);
  const gone = [hook, hookIn, job, idleJob, idleHook, retrying].map((one) => one.id);
  const left = [...store.listPartition('*', 10_000)].filter((key) =>
    gone.some((one) => key.some((part) => part.includes(one))),
  );
  assert.deepEqual(left, []);
});
