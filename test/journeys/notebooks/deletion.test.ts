import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import type { OutputPart, Run } from '#src/contract/wire/run.ts';
import type { RecordKind } from '#storage/codec.ts';
import { openStore } from '#storage/open-store.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { assetRecords } from '#storage/records/assets.ts';
import { blobRecords, blobUses } from '#storage/records/blobs.ts';
import { conversationGrants, conversationRecords, entryRecords } from '#storage/records/conversations.ts';
import { cellOutputRecords, notebookRecords, notebookSummaries } from '#storage/records/notebooks.ts';
import {
  agentRuns,
  endedRuns,
  endPlaces,
  environmentRuns,
  runIndex,
  runRecords,
  sessionRuns,
  statusRuns,
  userRuns,
} from '#storage/records/runs.ts';
import { openSessionPlaces, sessionPlaces } from '#storage/records/sessions.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
const { client } = server;
const MODEL = 'openai-compatible/scripted';
const LARGE = 'import marimo as mo';
const OF_RUNS: readonly RecordKind<unknown>[] = [
  runRecords,
  runIndex,
  statusRuns,
  endedRuns,
  endPlaces,
  environmentRuns,
  userRuns,
  sessionRuns,
  agentRuns,
  assetRecords,
];

async function memberAs(userId: string, role: 'owner' | 'editor' | 'viewer'): Promise<Client> {
  await client.members.create({ userId, role });
  const { token } = await client.accessTokens.create({
    name: userId,
    userId,
    scopes: ['workspaceRuntime:connect'],
  });
  return server.clientOf({ token, workspaceId: OWNER.workspaceId });
}

async function conversation(as: Client, prompts = 0): Promise<{ sessionId: string; runIds: string[] }> {
  const { environmentId } = await as.executionEnvironments.create();
  const { sessionId } = await as.agentSessions.open({ environmentId, config: { model: MODEL } });
  const runIds: string[] = [];
  for (let i = 0; i < prompts; i++) {
    model.script((exchange) => exchange.text(`Answer ${i}.`).end());
    const run = await as.agentSessions.ask(sessionId, `Question ${i}?`);
    assert.ok('id' in run);
    runIds.push(run.id);
  }
  return { sessionId, runIds };
}

async function allUnknown(calls: readonly Promise<unknown>[]): Promise<void> {
  for (const refusal of await Promise.all(calls.map(refusalOf))) assert.equal(refusal, '404 not_found');
}

const assetOf = (run: Run) =>
  run.output?.parts.find((part): part is Extract<OutputPart, { type: 'asset' }> => part.type === 'asset');

test('a run that has ended is deleted with its output, its assets and its places in lists', async () => {
  const notebook = await openNotebook(server, { mo: LARGE, a: 'mo.Html("x" * 100_000)' });
  const run = await notebook.run(['a']);
  const other = await notebook.run(['a']);
  const { assetId } = assetOf(run)!;
  assert.equal((await client.runs.asset(run.id, assetId)).bytes.length, 100_000);
  await client.runs.delete(run.id);
  await allUnknown([
    client.runs.get(run.id),
    client.runs.asset(run.id, assetId),
    client.runs.cancel(run.id),
    client.runs.delete(run.id),
    client.runs.deleteAsset(run.id, assetId),
  ]);
  const { list } = client.runs;
  for (const query of [{}, { sessionId: notebook.id }, { status: 'completed' }] as const) {
    assert.deepEqual(
      (await list({ ...query, order: 'desc', limit: 100 })).items.filter(({ id }) => id === run.id),
      [],
    );
  }
  assert.deepEqual(
    (await client.executions.list(notebook.id)).items.map(({ id }) => id),
    [other.id],
  );
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await notebook.close();
});

test('an asset can be deleted alone, and its run stays', async () => {
  const notebook = await openNotebook(server, { mo: LARGE, a: 'mo.Html("x" * 100_000)' });
  const run = await notebook.run(['a']);
  const { assetId } = assetOf(run)!;
  await client.runs.deleteAsset(run.id, assetId);
  assert.equal(await refusalOf(client.runs.asset(run.id, assetId)), '404 not_found');
  assert.equal(await refusalOf(client.runs.deleteAsset(run.id, assetId)), '404 not_found');
  assert.deepEqual(await client.runs.get(run.id), run);
  await notebook.close();
});

test('deleting a run that has not ended is refused, with advice', async () => {
  const notebook = await openNotebook(server, { a: 'import time\ntime.sleep(1000)' });
  const runId = await notebook.submit(['a']);
  const problem = await problemOf(client.runs.delete(runId));
  assert.equal(`${problem.status} ${problem.code}`, '409 run_in_progress');
  assert.match(problem.message, /Cancel the run first/);
  await client.runs.cancel(runId);
  await client.runs.get(runId, { wait: 60 });
  await client.runs.delete(runId);
  await notebook.close();
});

test('exactly one of fifty simultaneous deletions succeeds', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { id } = await notebook.run(['a']);
  const deleted = Array.from({ length: 50 }, () => client.runs.delete(id));
  assert.deepEqual(await tally(deleted), { ok: 1, '404 not_found': 49 });
  const { sessionId } = await conversation(client);
  const forgotten = Array.from({ length: 50 }, () => client.agentSessions.delete(sessionId));
  assert.deepEqual(await tally(forgotten), { ok: 1, '404 not_found': 49 });
  await notebook.close();
});

test('viewers delete nothing, and a private prompt can be deleted by the owner of its conversation or of the workspace', async () => {
  const [viewer, editor] = [await memberAs('viewer', 'viewer'), await memberAs('editor', 'editor')];
  const guest = await memberAs('guest', 'editor');
  const notebook = await openNotebook(server, { a: '1' });
  const run = await notebook.run(['a']);
  assert.equal(await refusalOf(viewer.runs.delete(run.id)), '403 role_too_low');
  await guest.runs.delete(run.id);
  const { sessionId, runIds } = await conversation(editor, 2);
  const [first = '', second = ''] = runIds;
  assert.equal(await refusalOf(guest.runs.delete(first)), '404 not_found');
  assert.equal(await refusalOf(guest.agentSessions.delete(sessionId)), '404 not_found');
  await editor.agentSessions.grant(sessionId, 'guest');
  assert.equal(await refusalOf(guest.runs.delete(first)), '403 conversation_read_only');
  assert.equal(await refusalOf(guest.agentSessions.delete(sessionId)), '403 conversation_read_only');
  await editor.runs.delete(first);
  await client.runs.delete(second);
  assert.equal((await editor.agentSessions.get(sessionId)).entries.length, 4, 'the conversation stays');
  await notebook.close();
});

test('the entries of a conversation are paged, in both orders', async () => {
  const { sessionId } = await conversation(client, 2);
  const { entries } = await client.agentSessions.get(sessionId);
  assert.equal(entries.length, 4);
  const first = await client.agentSessions.entries(sessionId, { limit: 3 });
  assert.deepEqual(first, { items: entries.slice(0, 3), nextCursor: entries[2]!.id });
  const rest = await client.agentSessions.entries(sessionId, { after: entries[2]!.id });
  assert.deepEqual(rest, { items: entries.slice(3), nextCursor: null });
  const newest = await client.agentSessions.entries(sessionId, { limit: 1, order: 'desc' });
  assert.deepEqual(newest.items, entries.slice(3));
  assert.equal(
    await refusalOf(client.agentSessions.entries(sessionId, { after: sessionId })),
    '400 invalid_cursor',
  );
  const stranger = server.clientOf(await server.stranger());
  assert.equal(await refusalOf(stranger.agentSessions.entries(sessionId)), '404 not_found');
});

test('a closed conversation is deleted with its prompts, and a conversation is not deleted while a prompt runs', async () => {
  const { sessionId, runIds } = await conversation(client, 2);
  const stream = (async () => {
    const types: string[] = [];
    for await (const { type } of client.agentSessions.follow(sessionId)) types.push(type);
    return types;
  })();
  let finish = () => {};
  const asked = new Promise<void>((resolve) => {
    model.script((exchange) => {
      finish = () => exchange.text('At last.').end();
      resolve();
      return exchange;
    });
  });
  const { runId } = await client.agentSessions.prompt(sessionId, 'Take your time.');
  assert.equal(await refusalOf(client.agentSessions.delete(sessionId)), '409 session_busy');
  await asked;
  finish();
  await client.runs.get(runId, { wait: 60 });
  const { environmentId } = await client.agentSessions.get(sessionId);
  await client.agentSessions.delete(sessionId);
  assert.equal((await stream).at(-1), 'session.closed');
  await allUnknown([
    client.agentSessions.get(sessionId),
    client.agentSessions.entries(sessionId),
    client.agentSessions.listRuns(sessionId),
    client.agentSessions.delete(sessionId),
    client.runs.get(runIds[0]!),
    client.agentSessions.open({ environmentId: environmentId!, id: sessionId }),
  ]);
  assert.deepEqual((await client.runs.list({ sessionId })).items, []);
  assert.equal(
    (await client.executionEnvironments.close(environmentId!)).status,
    'closed',
    'nothing is attached',
  );
});

test('a deletion is completed even when the server is killed immediately afterwards', async (t) => {
  const env = { TROUPE_OPENAI_COMPATIBLE_URL: model.url };
  const first = await startChildServer(t, env);
  const notebook = await openNotebook(first, { mo: LARGE, a: 'mo.Html("x" * 100_000)' });
  const run = await notebook.run(['a']);
  const kept = await notebook.run(['a']);
  const { sessionId } = await conversation(first.client, 3);
  await Promise.all([first.client.runs.delete(run.id), first.client.agentSessions.delete(sessionId)]);
  await first.end('SIGKILL');
  const second = await first.again();
  await allUnknown([second.client.runs.get(run.id), second.client.agentSessions.get(sessionId)]);
  assert.deepEqual(
    (await second.client.runs.list()).items.map(({ id }) => id),
    [kept.id],
  );
  await second.end('SIGTERM');

  const store = await openStore(`${first.dataDir}/store`, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const left = (kind: RecordKind<unknown>) =>
    [...store.listKeys(kind, OWNER.workspaceId, [], 1000)].map((key) => key.join(' '));
  for (const kind of OF_RUNS) {
    const keys = left(kind);
    assert.deepEqual(
      keys.filter((key) => !key.includes(kept.id)),
      [],
      kind.name,
    );
  }
  for (const kind of [conversationRecords, entryRecords, conversationGrants])
    assert.deepEqual(left(kind), [], kind.name);
  assert.deepEqual(
    left(actorSnapshots).filter((key) => /^(run|agent-session) /.test(key)),
    [],
  );
});

test('deleting a notebook deletes its session, its conversation, its runs and their outputs, also when the server is killed', async (t) => {
  const first = await startChildServer(t, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
  const notebook = await openNotebook(first, { mo: LARGE, a: 'mo.Html("x" * 100_000)' });
  const runs = [await notebook.run([]), await notebook.run(['a'])];
  const { environmentId, id } = notebook;
  await first.client.agentSessions.open({ environmentId, notebookSessionId: id, config: { model: MODEL } });
  model.script((exchange) => exchange.text('Forty-two.').end());
  const prompt = await first.client.agentSessions.ask(id, 'What is the answer?');
  assert.ok('id' in prompt);
  assert.equal(await refusalOf(first.client.notebooks.delete(id)), '409 session_open');
  await notebook.close();
  await first.client.notebooks.delete(id);
  await first.end('SIGKILL');
  const { client: again, end } = await first.again();
  await allUnknown([
    again.notebooks.get(id),
    again.notebookSessions.get(id),
    again.agentSessions.get(id),
    ...[...runs, prompt].map((run) => again.runs.get(run.id)),
    again.runs.asset(runs[0]!.id, assetOf(runs[0]!)!.assetId),
  ]);
  assert.deepEqual((await again.runs.list()).items, []);
  await end('SIGTERM');

  const store = await openStore(`${first.dataDir}/store`, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const kinds = [
    ...OF_RUNS,
    ...[notebookRecords, notebookSummaries, cellOutputRecords, sessionPlaces, openSessionPlaces],
    ...[conversationRecords, entryRecords, blobRecords, blobUses],
  ];
  for (const kind of kinds)
    assert.deepEqual([...store.listKeys(kind, OWNER.workspaceId, [], 1000)], [], kind.name);
  const actors = [...store.listKeys(actorSnapshots, OWNER.workspaceId, [], 1000)].map(([kind]) => kind);
  assert.deepEqual(actors, ['environment']);
});
