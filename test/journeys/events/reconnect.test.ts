import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from '#src/contract/client/client.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startCuttingProxy } from '#test/support/stand-ins/cutting-proxy.ts';

const TERMINAL = new Set(['completed', 'failed', 'cancelled']);

test('a subscriber that is cut off repeatedly receives every end of a run exactly once, and misses no output', async (t) => {
  const server = await startServer(t);
  const proxy = await startCuttingProxy(t, server.baseUrl);
  const notebook = await openNotebook(server, { a: 'n = globals().get("n", 0)\nprint("line", n)' });
  const { token: accessToken, workspaceId } = OWNER;
  const far = createClient({ baseUrl: proxy.baseUrl, accessToken, workspaceId });
  await using events = await EventLog.open(far, notebook.id);
  const runIds: string[] = [];
  for (let round = 0; round < 30; round++) {
    const run = notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: `print("line ${round}")` }] });
    if (round % 3 === 1) proxy.cut();
    runIds.push((await run).id);
    if (round % 3 !== 2) continue;
    const before = proxy.connections;
    proxy.cut();
    await eventually('the subscriber is back', () => proxy.connections > before);
  }
  await events.until(
    ({ type, data }) => type === 'run-status' && data.runId === runIds.at(-1) && data.status !== 'running',
  );
  assert.ok(proxy.connections > 10, `${proxy.connections} connections`);
  const ends = events.dataOf('run-status').filter(({ status }) => TERMINAL.has(status));
  assert.deepEqual(
    ends.map(({ runId, status }) => [runId, status]),
    runIds.map((runId) => [runId, 'completed']),
  );
  assert.equal(events.printed('a'), runIds.map((_, round) => `line ${round}\n`).join(''));
  assert.equal(events.dataOf('session.snapshot').length, 1, 'every reconnect went on where it was cut');
});

test('a subscriber that returns with an unknown event id receives the ends of the runs in between', async (t) => {
  const server = await startServer(t);
  const notebook = await openNotebook(server, { a: '1', b: '1 / 0', c: 'import time\ntime.sleep(1000)' });
  const ended = [await notebook.run(['a']), await notebook.run(['b'])];
  const running = await notebook.submit(['c']);
  await using events = await EventLog.open(server.client, notebook.id, { lastEventId: '0123456789-7' });
  assert.deepEqual(
    events.dataOf('run-status').map(({ runId, status, error }) => [runId, status, error?.code]),
    [
      [ended[0]!.id, 'completed', undefined],
      [ended[1]!.id, 'failed', 'cell_failed'],
      [running, 'running', undefined],
    ],
  );
  assert.equal(events.types.at(-1), 'session.replayed');
});

test('a subscriber is notified when the server stops, and follows the session again after the restart', async (t) => {
  let server = await startServer(t);
  const notebook = await openNotebook(server, {
    a: 'print("begun", flush=True)\nimport time\ntime.sleep(1000)',
  });
  const proxy = { baseUrl: server.baseUrl };
  const { token: accessToken, workspaceId } = OWNER;
  // The client asks for the address each time, as it would ask a name server.
  const moving: typeof fetch = (input, init) =>
    fetch(String(input).replace('http://troupe', proxy.baseUrl), init);
  const client = createClient({ baseUrl: 'http://troupe', accessToken, workspaceId, fetch: moving });
  await using events = await EventLog.open(client, notebook.id);
  const runId = await notebook.submit(['a']);
  await events.until(({ type }) => type === 'console-output');
  server = await server.restart();
  proxy.baseUrl = server.baseUrl;
  await eventually('a second snapshot', () => events.dataOf('session.snapshot').length === 2);
  // The session may have become ready before this line was reached, or even before the snapshot.
  await eventually('a session that is ready again', () => {
    const again = events.events.findLastIndex(({ type }) => type === 'session.snapshot');
    return events.events
      .slice(again)
      .some(
        ({ type, data }) =>
          (type === 'session.snapshot' || type === 'session.status') && data.status === 'ready',
      );
  });
  assert.deepEqual(events.dataOf('session.resync-required'), [{ reason: 'server_stopping' }]);
  const told = events.dataOf('run-status').filter((data) => data.runId === runId);
  assert.deepEqual(
    told.map(({ status, error }) => [status, error?.code]),
    [
      ['running', undefined],
      ['failed', 'server_stopped'],
      ['failed', 'server_stopped'], // replayed, so a subscriber that had missed it would get it here
    ],
  );
});
