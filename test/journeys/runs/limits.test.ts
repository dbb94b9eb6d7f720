import assert from 'node:assert/strict';
import test from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { Client } from '#src/contract/client/client.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, kernelsOf } from '#test/support/processes.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

async function stateOf({ actors }: Client, kind: string, id: string): Promise<unknown> {
  return (await actors()).items.find((actor) => actor.kind === kind && actor.id === id)?.state;
}

test('the kernel of an unused session is ended, and the next use of the session starts another kernel', async (t) => {
  const server = await startChildServer(t, { TROUPE_IDLE_TIMEOUT_S: '0.5' });
  const { client } = server;
  const notebook = await openNotebook(server, { a: 'x = "kept"\nx' });
  await notebook.run(['a']);
  await eventually(
    'it sleeps',
    async () => (await stateOf(client, 'notebook-session', notebook.id)) === 'dormant',
  );
  await eventually('its kernel is gone', () => kernelsOf(server.pid).length === 0);

  await using events = await EventLog.open(client, notebook.id);
  await events.status('ready');
  const shown = events.dataOf('cell-op').find(({ cellId }) => cellId === 'a');
  assert.equal(shown?.stale, true);
  assert.match(String(shown?.output?.data), /kept/);
  assert.equal(kernelsOf(server.pid).length, 1);
  assert.equal((await callCode(client, notebook.id, 'x')).errors[0]?.type, 'NameError');
  assert.equal((await notebook.run(['a'])).status, 'completed');
});

test('a subscriber or a run keeps a session awake', async (t) => {
  const server = await startServer(t, { TROUPE_IDLE_TIMEOUT_S: '0.4' });
  const { client } = server;
  const [followed, running] = await Promise.all([
    openNotebook(server, { a: '1' }),
    openNotebook(server, { a: 'import time\ntime.sleep(1.5)\nx = 1' }),
  ]);
  await using events = await followed.events();
  await client.notebookSessions.wake(followed.id); // on a slow machine it slept before the subscriber came
  const { status, error } = await running.run(['a']);
  assert.deepEqual([status, error], ['completed', null]);
  await eventually('the followed session is awake', async () =>
    isDeepStrictEqual(await stateOf(client, 'notebook-session', followed.id), { live: 'ready' }),
  );
  assert.ok(events.dataOf('session.status').every(({ reason }) => reason !== 'idle'));
  await eventually(
    'the one without any of them sleeps',
    async () => (await stateOf(client, 'notebook-session', running.id)) === 'dormant',
  );
});

test('a read keeps a session awake', async (t) => {
  // A slow machine needs a longer time between two reads.
  for (const idleMs of [400, 800, 1600, 3200, 6400]) {
    const server = await startServer(t, { TROUPE_IDLE_TIMEOUT_S: String(idleMs / 1000) });
    const notebook = await openNotebook(server, { a: '1' });
    const readsMs = [performance.now()];
    while (readsMs.at(-1)! - readsMs[0]! < 3 * idleMs) {
      await notebook.record();
      readsMs.push(performance.now());
    }
    const state = await stateOf(server.client, 'notebook-session', notebook.id);
    readsMs.push(performance.now());
    // The server has handled each read within the read's time limit and after the previous read.
    if (readsMs.slice(2).some((atMs, n) => atMs - readsMs[n]! >= idleMs)) continue; // the session may have slept
    assert.deepEqual(state, { live: 'ready' });
    return;
  }
  assert.fail('this machine is too busy to read a session every six seconds');
});

test('a sleeping session can be closed, and survives a restart of the server', async (t) => {
  const server = await startChildServer(t, { TROUPE_IDLE_TIMEOUT_S: '0.2' });
  const [one, two] = await Promise.all([openNotebook(server, { a: '1' }), openNotebook(server, { a: '1' })]);
  for (const { id } of [one, two]) {
    await eventually(
      'it sleeps',
      async () => (await stateOf(server.client, 'notebook-session', id)) === 'dormant',
    );
  }
  assert.equal((await one.close()).status, 'closed');
  await server.end('SIGKILL');
  const { client } = await server.again();
  assert.equal((await client.notebookSessions.get(one.id)).status, 'closed');
  assert.equal((await client.notebookSessions.waitUntilReady(two.id)).status, 'ready');
});

test('at the session limit opening returns 503 with Retry-After, until a session is closed', async (t) => {
  const server = await startServer(t, { TROUPE_MAX_SESSIONS: '2' });
  const { client } = server;
  const [first] = await Promise.all([openNotebook(server, { a: '1' }), openNotebook(server, { a: '1' })]);
  const [{ id: notebookId }, { environmentId }] = await Promise.all([
    client.notebooks.create(),
    client.executionEnvironments.create(),
  ]);
  const { status, code, retryAfter } = await problemOf(
    client.notebookSessions.open({ notebookId, environmentId }),
  );
  assert.deepEqual([status, code, retryAfter], [503, 'at_capacity', 5]);
  assert.equal((await client.executionEnvironments.get(environmentId)).notebookSessionId, null);
  await first.close();
  assert.equal((await client.notebookSessions.open({ notebookId, environmentId })).status, 'starting');
  assert.equal((await client.notebookSessions.waitUntilReady(notebookId)).status, 'ready');
});

test('sessions that are restored after a restart count towards the limit', async (t) => {
  const server = await startChildServer(t, { TROUPE_MAX_SESSIONS: '2', TROUPE_IDLE_TIMEOUT_S: '0.3' });
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    // Each session sleeps before the next one is opened: three sessions are open, and at most one
    // has a kernel.
    const { id } = await openNotebook(server, { a: '1' });
    ids.push(id);
    await eventually(
      'it sleeps',
      async () => (await stateOf(server.client, 'notebook-session', id)) === 'dormant',
    );
  }
  await server.end('SIGKILL');
  const { client } = await server.again();
  const [one, two, three] = ids as [string, string, string];
  const first = await EventLog.open(client, one);
  await using _second = await EventLog.open(client, two);
  for (const use of [
    () => client.notebookSessions.get(three),
    () => client.executions.submit(three, { type: 'all' }),
    () => callCode(client, three, '1'),
    () => EventLog.open(client, three),
  ]) {
    assert.equal(await refusalOf(use()), '503 at_capacity');
  }
  assert.deepEqual(await client.executions.list(three), { items: [], nextCursor: null });
  assert.equal((await client.notebookSessions.get(one)).sessionId, one);
  await first[Symbol.asyncDispose]();
  await eventually('there is room once one sleeps', async () =>
    client.notebookSessions.get(three).then(
      () => true,
      () => false,
    ),
  );
  await using _third = await EventLog.open(client, three);
  assert.equal((await client.notebookSessions.waitUntilReady(three)).status, 'ready');
  assert.equal(await refusalOf(client.notebookSessions.get(one)), '503 at_capacity');
  assert.equal((await client.notebookSessions.close(one)).status, 'closed', 'closing needs no room');
});

test('each workspace has its own quota of sessions, of runs and of streams', async (t) => {
  const server = await startServer(t, {
    TROUPE_WORKSPACE_MAX_SESSIONS: '2',
    TROUPE_WORKSPACE_MAX_RUNS: '1',
    TROUPE_WORKSPACE_MAX_SUBSCRIBERS: '3',
  });
  const { client } = server;
  const SLOW = 'print("begun", flush=True)\nimport time\ntime.sleep(1000)';
  const [one, two] = [await openNotebook(server, { a: SLOW }), await openNotebook(server, { a: '1' })];
  const quota = async (call: Promise<unknown>) => {
    const { status, code, retryAfter } = await problemOf(call);
    assert.deepEqual([status, code, retryAfter], [429, 'quota_exceeded', 5]);
  };
  const [{ id: notebookId }, { environmentId }] = await Promise.all([
    client.notebooks.create(),
    client.executionEnvironments.create(),
  ]);
  await quota(client.notebookSessions.open({ notebookId, environmentId }));

  const events = await one.events();
  const runId = await one.submit(['a']);
  await events.until(({ type }) => type === 'console-output');
  const { updatedAt } = await client.notebooks.get(two.id);
  await quota(two.submit({ type: 'cells', cells: [{ cellId: 'a', code: 'changed = 1' }] }));
  assert.equal((await client.notebooks.get(two.id)).updatedAt, updatedAt, 'what is refused changes nothing');
  await client.runs.cancel(runId);
  await client.runs.wait(runId);
  assert.equal((await two.run(['a'])).status, 'completed');

  const more = [await two.events(), await two.events()];
  await quota(EventLog.open(client, two.id));

  const stranger = await server.stranger();
  const theirs = { client: server.clientOf(stranger) };
  const own = await openNotebook(theirs, { a: '1' });
  assert.equal((await own.run(['a'])).status, 'completed');
  for (const log of [events, ...more]) await log[Symbol.asyncDispose]();
  await eventually('a stream that is left makes room', () =>
    EventLog.open(client, two.id).then(
      (log) => log[Symbol.asyncDispose]().then(() => true),
      () => false,
    ),
  );
});

test('without settings nothing is limited and no session is put to sleep', async (t) => {
  const server = await startServer(t);
  const notebooks = await Promise.all(Array.from({ length: 12 }, () => openNotebook(server, { a: '1' })));
  const runs = await Promise.all(notebooks.map((notebook) => notebook.run(['a'])));
  assert.ok(runs.every(({ status }) => status === 'completed'));
});
