// tier: whole, because it waits for sessions to reach their limits
/** Sessions that end by themselves: `ttlS` and `idleTimeoutS`. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '#src/client/client.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { eventually, workersOf } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

interface Lifetime {
  readonly ttlS?: number | null;
  readonly idleTimeoutS?: number | null;
}

/** Opens a session on a notebook with a loop, in a new environment, and waits until it is ready. */
async function open(client: Client, lifetime: Lifetime) {
  const cells = [
    { cell_id: 'a', code: 'x = 1', options: {} },
    { cell_id: 'loop', code: 'print("begun", flush=True)\nwhile True: pass', options: {} },
  ];
  const { id } = await client.notebooks.create({
    serialization: { version: '1', app: { options: {} }, cells, valid: true, ui_values: {} },
  });
  const { environmentId } = await client.executionEnvironments.create();
  const opened = await client.notebookSessions.open({ notebookId: id, environmentId, ...lifetime });
  return { id, environmentId, opened };
}

/**
 * Resolves with the status of a session, read from a list, because that does not count as a use of
 * the session.
 */
async function statusOf(client: Client, notebookId: string): Promise<string | undefined> {
  const { items } = await client.notebookSessions.list({ notebookId });
  return items[0]?.status;
}

function isClosed(client: Client, notebookId: string): Promise<unknown> {
  return eventually('the session has ended', async () => (await statusOf(client, notebookId)) === 'closed');
}

function isEnvironmentClosed(client: Client, environmentId: string): Promise<unknown> {
  return eventually(
    'the environment is closed',
    async () => (await client.executionEnvironments.get(environmentId)).status === 'closed',
  );
}

test('a session ends the set number of seconds after its opening, even in use: its run is cancelled, its content stays, and its environment closes', async () => {
  const { client } = server;
  const { id, environmentId, opened } = await open(client, { ttlS: 3 });
  const { createdAt, ttlS, idleTimeoutS, expiresAt } = opened;
  assert.deepEqual([ttlS, idleTimeoutS], [3, null]);
  assert.equal(Date.parse(String(expiresAt)) - Date.parse(createdAt), 3000);
  await client.notebookSessions.waitUntilReady(id);
  const { runId } = await client.executions.submit(id, { type: 'all' });
  const run = await client.waitForRun(runId);
  assert.deepEqual([run.status, run.error?.code], ['cancelled', 'session_closed']);
  assert.ok(Date.now() >= Date.parse(String(expiresAt)));
  await isClosed(client, id);
  await isEnvironmentClosed(client, environmentId);
  assert.equal((await client.notebooks.get(id)).serialization.cells.length, 2);
  assert.equal((await client.notebookSessions.get(id)).expiresAt, null);
});

test('a session ends when it was not used for its idle timeout, and each use restarts the timeout', async () => {
  const { client } = server;
  const { id, environmentId } = await open(client, { idleTimeoutS: 2 });
  await client.notebookSessions.waitUntilReady(id);
  for (let uses = 0; uses < 4; uses++) {
    await sleep(800);
    assert.equal((await client.notebookSessions.get(id)).status, 'ready');
  }
  const usedAt = Date.now();
  await isClosed(client, id);
  assert.ok(Date.now() - usedAt >= 1900, 'it did not end early');
  await isEnvironmentClosed(client, environmentId);
});

test('a run in progress and a follower count as uses, and an observer does not', async () => {
  const { client } = server;
  const { id } = await open(client, { idleTimeoutS: 1 });
  await client.notebookSessions.waitUntilReady(id);
  const { runId } = await client.executions.submit(id, { type: 'all' });
  const follow = new AbortController();
  const followed = (async () => {
    for await (const _ of client.notebookSessions.follow(id, { signal: follow.signal }));
  })().catch(() => {});
  await sleep(2500);
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  await sleep(2500);
  assert.equal(await statusOf(client, id), 'ready', 'its follower keeps it');
  follow.abort();
  await followed;
  const observe = new AbortController();
  const observed = (async () => {
    for await (const { type } of client.notebookSessions.follow(id, {
      signal: observe.signal,
      observe: true,
    }))
      if (type === 'session.closed') return true;
    return false;
  })();
  assert.equal(await observed, true, 'the observer sees the end');
  await isClosed(client, id);
});

test('a sleeping session ends at its time', async () => {
  const { client } = server;
  for (const lifetime of [{ ttlS: 2 }, { idleTimeoutS: 2 }]) {
    const { id, environmentId } = await open(client, lifetime);
    await client.notebookSessions.waitUntilReady(id);
    await client.notebookSessions.hibernate(id);
    await isClosed(client, id);
    await isEnvironmentClosed(client, environmentId);
  }
});

test('an environment to which others are attached stays open', async () => {
  const { client } = server;
  const { id, environmentId } = await open(client, { ttlS: 1 });
  const { sessionId } = await client.agentSessions.open({ environmentId });
  await isClosed(client, id);
  await sleep(1500);
  const { status, agentSessionIds, notebookSessionId } =
    await client.executionEnvironments.get(environmentId);
  assert.deepEqual([status, agentSessionIds, notebookSessionId], ['open', [sessionId], null]);
});

test('a session that is closed and opened again has only the lifetime of its last opening', async () => {
  const { client } = server;
  const { id, environmentId } = await open(client, { ttlS: 1, idleTimeoutS: 60 });
  await client.notebookSessions.close(id);
  const again = await client.notebookSessions.open({ notebookId: id, environmentId });
  assert.deepEqual([again.ttlS, again.idleTimeoutS, again.expiresAt], [null, null, null]);
  await sleep(2500);
  assert.equal(await statusOf(client, id), 'ready');
  assert.equal((await client.executionEnvironments.get(environmentId)).status, 'open');
  await client.notebookSessions.close(id);
});

test('a lifetime is 1 to 2592000 whole seconds, or null', async () => {
  const { client } = server;
  for (const name of ['ttlS', 'idleTimeoutS'] as const) {
    for (const value of [2_592_000, null]) {
      const { id, opened } = await open(client, { [name]: value });
      assert.equal(opened[name], value);
      await client.notebookSessions.close(id);
    }
    for (const value of [2_592_001, 0, -1, 0.5])
      assert.equal(
        await refusalOf(open(client, { [name]: value })),
        '400 invalid_request',
        `${name} ${value}`,
      );
  }
});

/** Ends the server with a signal and starts it again. */
async function restart(before: ChildServer, signal: NodeJS.Signals): Promise<ChildServer> {
  await before.end(signal);
  return before.again();
}

async function survives(t: TestContext, signal: NodeJS.Signals): Promise<void> {
  const before = await startChildServer(t);
  const [old, idle] = [
    await open(before.client, { ttlS: 2 }),
    await open(before.client, { idleTimeoutS: 2 }),
  ];
  const late = await open(before.client, { ttlS: 3600 });
  const { client } = await restart(before, signal);
  for (const { id, environmentId } of [old, idle]) {
    await isClosed(client, id);
    await isEnvironmentClosed(client, environmentId);
  }
  const { expiresAt } = await client.notebookSessions.get(late.id);
  assert.equal(expiresAt, late.opened.expiresAt, 'a restart does not move the end');
}

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  test(`sessions end at their time after the server was ended by ${signal}`, (t) => survives(t, signal));

const WORKERS = 3;
/**
 * Enough sessions for each worker to be the home of some, except in one of some hundreds of runs.
 */
const SESSIONS = 12;

test('sessions end at their time when each worker was killed and replaced meanwhile', async (t) => {
  const { pid, client } = await startChildServer(t, { TROUPE_WORKERS: String(WORKERS) });
  const each = (lifetime: Lifetime) =>
    Promise.all(Array.from({ length: SESSIONS }, () => open(client, lifetime)));
  const [old, idle, late] = [
    await each({ ttlS: 20 }),
    await each({ idleTimeoutS: 10 }),
    await each({ ttlS: 3600 }),
  ];
  for (const { pid: worker } of workersOf(pid)) {
    process.kill(worker, 'SIGKILL');
    await eventually('another worker is there', () => {
      const pids = workersOf(pid).map((one) => one.pid);
      return pids.length === WORKERS && !pids.includes(worker);
    });
  }
  const ends = new Map(old.map(({ id, opened }) => [id, Date.parse(String(opened.expiresAt))]));
  for (const { id, environmentId } of [...old, ...idle]) {
    await eventually('the session has ended', async () => (await statusOf(client, id)) === 'closed', 90_000);
    assert.ok(Date.now() >= (ends.get(id) ?? 0), 'it did not end early');
    await isEnvironmentClosed(client, environmentId);
  }
  for (const { id, opened } of late) {
    const { status, expiresAt } = await client.notebookSessions.get(id);
    assert.equal(expiresAt, opened.expiresAt);
    assert.notEqual(status, 'closed');
  }
});
