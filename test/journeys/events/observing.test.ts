import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { OWNER, startServer, type TestServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const server = await startServer(test);
const sleepy = await startServer(test, { TROUPE_IDLE_TIMEOUT_S: '0.3' });

type Looked = Pick<TestServer, 'client' | 'baseUrl'>;

const stateOf = async ({ client }: Looked, id: string) => {
  const { path, presence } = await client.actor('notebook-session', id);
  return `${presence} ${path}`;
};

/** Looks at everything that operators look at. */
async function lookAround({ client, baseUrl }: Looked, id: string): Promise<void> {
  await client.actors({ q: id });
  await client.actor('notebook-session', id);
  await client.actor('environment', id).catch(() => undefined);
  await client.notebookSessions.list();
  await client.executionEnvironments.list();
  await client.runs.list();
  await client.agentSessions.list();
  await client.kernels();
  await client.server();
  const metrics = await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${OWNER.token}` } });
  assert.equal(metrics.status, 200);
}

test('observers do not wake a sleeping session, and see when it wakes', async () => {
  const notebook = await openNotebook(server, { a: 'print("hello")\n40 + 2' });
  const { id } = notebook;
  await notebook.run(['a']);
  await using observer = await EventLog.open(server.client, id, { observe: true });
  const asleep = await server.client.notebookSessions.hibernate(id);
  assert.deepEqual([asleep.status, asleep.kernel], ['ready', null]);
  await observer.until(({ type, data }) => type === 'session.status' && data.reason === 'hibernated');
  assert.equal(await stateOf(server, id), 'live dormant');

  await using late = await EventLog.open(server.client, id, { observe: true });
  const [snapshot] = late.dataOf('session.snapshot');
  assert.deepEqual([snapshot?.status, snapshot?.kernel], ['ready', null]);
  const [cell] = late.dataOf('cell-op').filter(({ cellId }) => cellId === 'a');
  assert.deepEqual([cell?.stale, late.printed('a')], [true, 'hello\n'], 'it gets the saved state');
  await lookAround(server, id);
  assert.equal(await stateOf(server, id), 'live dormant');
  const { items } = await server.client.kernels();
  assert.ok(!items.some(({ sessionId }) => sessionId === id));

  await server.client.notebookSessions.waitUntilReady(id);
  await notebook.run(['a']);
  for (const log of [observer, late]) {
    await log.until(({ type, data }) => type === 'session.status' && data.status === 'restoring');
    await log.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
  }
  await notebook.close();
  await Promise.all([observer.ended, late.ended]);
  assert.equal(observer.types.at(-1), 'session.closed');
});

test('reading or hibernating a session of a dead server does not start its kernel', async (t) => {
  const first = await startChildServer(t);
  const notebook = await openNotebook(first, { a: '1' });
  await first.end('SIGKILL');
  const again = await first.again();
  const { client } = again;
  await using observer = await EventLog.open(client, notebook.id, { observe: true });
  assert.deepEqual(
    observer.dataOf('session.snapshot').map(({ status, kernel }) => [status, kernel]),
    [['ready', null]],
  );
  await lookAround(again, notebook.id);
  assert.deepEqual((await client.notebookSessions.hibernate(notebook.id)).kernel, null);
  assert.equal(await stateOf(again, notebook.id), 'stored live.ready');
  assert.deepEqual((await client.kernels()).items, []);
  await client.notebookSessions.close(notebook.id);
  await observer.ended;
});

test('a session with only observers goes to sleep, and a session with a user stays awake', async () => {
  const [idle, used] = await Promise.all([
    openNotebook(sleepy, { a: '1' }),
    openNotebook(sleepy, { a: '1' }),
  ]);
  await using observer = await EventLog.open(sleepy.client, idle.id, { observe: true });
  await using _user = await EventLog.open(sleepy.client, used.id);
  // Both may have slept before anybody followed them. From here on, the idle one falls asleep in front of its observer.
  for (const { id } of [idle, used]) await sleepy.client.notebookSessions.wake(id);
  await using _observerOfUsed = await EventLog.open(sleepy.client, used.id, { observe: true });
  let looks = 0;
  await eventually('the observed session sleeps', async () => {
    looks++;
    await lookAround(sleepy, idle.id);
    return (await stateOf(sleepy, idle.id)) === 'live dormant';
  });
  assert.ok(looks > 0);
  await observer.until(({ type, data }) => type === 'session.status' && data.reason === 'idle');
  await eventually(
    'the used session is awake',
    async () => (await stateOf(sleepy, used.id)) === 'live live.ready',
  );
  await Promise.all([idle.close(), used.close()]);
});

test('a stalled observer does not pause the kernel, and is cut off', async (t) => {
  const small = await startServer(t, { TROUPE_SUBSCRIBER_BUFFER_BYTES: '65536' });
  const notebook = await openNotebook(small, {
    a: 'import sys\nfor i in range(4000):\n    sys.stderr.write(f"{i:05d}" + "x" * 2000 + "\\n")',
  });
  const observer = await openStream(small, `/api/v3/notebook-sessions/${notebook.id}/events?observe=true`);
  await observer.until('session.replayed');
  observer.pause();
  assert.equal((await notebook.run(['a'])).status, 'completed');
  observer.resume();
  await observer.ended;
  await notebook.close();
});

test('observers follow a conversation without keeping it in memory', async (t) => {
  const model = await startScriptedModel(t);
  const agents = await startServer(t, {
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
  });
  const { client } = agents;
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const path = `/api/v3/agent-sessions/${sessionId}/events?observe=true`;
  const observer = await openStream(agents, path);
  await observer.until('session.replayed');
  for (const text of ['One.', 'Two.']) {
    model.script((exchange) => exchange.text(text).end());
    const { runId } = await client.agentSessions.prompt(sessionId, 'Go on.');
    await client.waitForRun(runId);
    await observer.until(text);
  }
  const late = await openStream(agents, path);
  await late.until('session.replayed');
  assert.ok(late.text.includes('One.') && late.text.includes('Two.'));
  await client.agentSessions.close(sessionId);
  await Promise.all([observer.ended, late.ended]);
  assert.ok(observer.text.includes('session.closed'));
});
