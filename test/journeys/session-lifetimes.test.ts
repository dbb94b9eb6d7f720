// tier: whole, because it waits for sessions to reach their limits
/** Sessions that end by themselves: `ttlS` and `idleTimeoutS`. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '#src/contract/client/client.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
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

/**
 * Resolves with the first result of `attempt`, which gets a number of seconds. When a session has ended before the test had done with
 * it what it needs, because the machine was busy, `attempt` rejects, and the next one gets twice as much time.
 */
async function inTime<T>(seconds: number, attempt: (seconds: number) => Promise<T>): Promise<T> {
  for (let longer = seconds; ; longer *= 2) {
    try {
      return await attempt(longer);
    } catch (error) {
      if (longer > 30) throw error;
    }
  }
}

test('a session ends the set number of seconds after its opening, even in use: its run is cancelled, its content stays, and its environment closes', async () => {
  const { client } = server;
  const { id, environmentId, opened, seconds, runId } = await inTime(3, async (seconds) => {
    const session = await open(client, { ttlS: seconds });
    await client.notebookSessions.waitUntilReady(session.id);
    const { runId } = await client.executions.submit(session.id, { type: 'all' });
    return { ...session, seconds, runId };
  });
  const { createdAt, ttlS, idleTimeoutS, expiresAt } = opened;
  assert.deepEqual([ttlS, idleTimeoutS], [seconds, null]);
  assert.equal(Date.parse(String(expiresAt)) - Date.parse(createdAt), seconds * 1000);
  const run = await client.waitForRun(runId);
  assert.deepEqual([run.status, run.error?.code], ['cancelled', 'session_closed']);
  assert.ok(Date.now() >= Date.parse(String(expiresAt)));
  await isClosed(client, id);
  await isEnvironmentClosed(client, environmentId);
  assert.equal((await client.notebooks.get(id)).serialization.cells.length, 2);
  assert.equal((await client.notebookSessions.get(id)).expiresAt, null);
});

test('a session ends after its idle timeout without use, and each use restarts the timeout', async () => {
  const { client } = server;
  const { id, environmentId, seconds, usedAt } = await inTime(2, async (seconds) => {
    const session = await open(client, { idleTimeoutS: seconds });
    await client.notebookSessions.waitUntilReady(session.id);
    let usedAt = Date.now();
    for (let uses = 0; uses < 4; uses++) {
      await sleep(seconds * 400); // its uses together take longer than the timeout
      const askedAt = Date.now();
      const { status } = await client.notebookSessions.get(session.id);
      if (status !== 'ready' && Date.now() - usedAt >= seconds * 1000)
        throw new Error('the machine is too busy');
      assert.equal(status, 'ready');
      usedAt = askedAt;
    }
    return { ...session, seconds, usedAt };
  });
  await isClosed(client, id);
  assert.ok(Date.now() - usedAt >= seconds * 1000 - 100, 'it did not end early');
  await isEnvironmentClosed(client, environmentId);
});

test('an open page keeps its session, even with a short idle timeout, until the page is closed', async () => {
  const { client, baseUrl } = server;
  const { id, page, seconds } = await inTime(2, async (seconds) => {
    const session = await open(client, { idleTimeoutS: seconds });
    await client.notebookSessions.waitUntilReady(session.id);
    const page = await NotebookPageClient.open(client, baseUrl, session.id);
    await page.follow();
    return { ...session, page, seconds };
  });
  // Another session that is opened later and has no page is due later.
  const unseen = await open(client, { idleTimeoutS: seconds * 2 });
  await isClosed(client, unseen.id);
  assert.equal(await statusOf(client, id), 'ready');
  await page[Symbol.asyncDispose]();
  await isClosed(client, id);
});

test('a run in progress and a follower count as uses, and an observer does not', async () => {
  const { client } = server;
  const { id, runId, seconds } = await inTime(1, async (seconds) => {
    const session = await open(client, { idleTimeoutS: seconds });
    await client.notebookSessions.waitUntilReady(session.id);
    const { runId } = await client.executions.submit(session.id, { type: 'all' });
    return { ...session, seconds, runId };
  });
  const follow = new AbortController();
  const followed = (async () => {
    for await (const _ of client.notebookSessions.follow(id, { signal: follow.signal }));
  })().catch(() => {});
  await sleep(seconds * 2500); // longer than the timeout
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  await sleep(seconds * 2500); // longer than the timeout, after which a session without a follower would have ended
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
  for (const name of ['ttlS', 'idleTimeoutS'] as const) {
    const { id, environmentId } = await inTime(2, async (seconds) => {
      const session = await open(client, { [name]: seconds });
      await client.notebookSessions.waitUntilReady(session.id);
      await client.notebookSessions.hibernate(session.id);
      return session;
    });
    await isClosed(client, id);
    await isEnvironmentClosed(client, environmentId);
  }
});

test('an environment with other attached sessions stays open', async () => {
  const { client } = server;
  const { id, environmentId, sessionId } = await inTime(1, async (seconds) => {
    const { id, environmentId } = await open(client, { ttlS: seconds });
    const { sessionId } = await client.agentSessions.open({ environmentId });
    return { id, environmentId, sessionId };
  });
  await isClosed(client, id);
  await sleep(1500); // nothing announces that an environment stays open
  const { status, agentSessionIds, notebookSessionId } =
    await client.executionEnvironments.get(environmentId);
  assert.deepEqual([status, agentSessionIds, notebookSessionId], ['open', [sessionId], null]);
});

test('a session that is closed and opened again has only the lifetime of its last opening', async () => {
  const { client } = server;
  const { id, environmentId, again, seconds } = await inTime(1, async (seconds) => {
    const { id, environmentId } = await open(client, { ttlS: seconds, idleTimeoutS: 60 });
    await client.notebookSessions.close(id);
    const again = await client.notebookSessions.open({ notebookId: id, environmentId });
    return { id, environmentId, again, seconds };
  });
  assert.deepEqual([again.ttlS, again.idleTimeoutS, again.expiresAt], [null, null, null]);
  await sleep(seconds * 2500); // past the end of its first lifetime
  await client.notebookSessions.waitUntilReady(id);
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
    await eventually('the session has ended', async () => (await statusOf(client, id)) === 'closed');
    assert.ok(Date.now() >= (ends.get(id) ?? 0), 'it did not end early');
    await isEnvironmentClosed(client, environmentId);
  }
  for (const { id, opened } of late) {
    const { status, expiresAt } = await client.notebookSessions.get(id);
    assert.equal(expiresAt, opened.expiresAt);
    assert.notEqual(status, 'closed');
  }
});
