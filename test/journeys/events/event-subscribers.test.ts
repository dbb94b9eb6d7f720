/** Several, returning and slow subscribers of one session, and the events that they receive. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { EventLog } from '#test/support/event-log.ts';
import { scrape } from '#test/support/metrics.ts';
import { openNotebook, writing } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { bare, brief, eventsIn, eventsPath } from './stream-events.ts';

const server = await startServer(test, { TROUPE_HEARTBEAT_S: '0.1' });
const { client } = server;

test('all subscribers see the same frames', async () => {
  const notebook = await openNotebook(server, { a: 'print("same"); 1' });
  const logs = await Promise.all(Array.from({ length: 5 }, () => notebook.events()));
  await notebook.run(['a']);
  await notebook.close();
  await Promise.all(logs.map(({ ended }) => ended));
  const [first, ...others] = logs.map(({ events, ids }) => [events.map(bare), ids]);
  for (const other of others) assert.deepEqual(other, first);
});

test('a client that returns with its last event id continues after that event, and gets no event twice', async () => {
  const notebook = await openNotebook(server, { a: 'print("one")', b: 'print("two")' });
  const all = await notebook.events();
  const first = await openStream(server, eventsPath(notebook.id));
  await first.until('session.replayed');
  const replayedId = first.lastEventId;
  await notebook.run(['a']);
  await all.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
  await first.until('"status":"completed"');
  first.close();
  const resumed = new EventLog(client, notebook.id, { lastEventId: first.lastEventId });
  const fromStart = new EventLog(client, notebook.id, { lastEventId: replayedId });
  await Promise.all([notebook.run(['b']), resumed.next(() => true), fromStart.next(() => true)]);
  await notebook.close();
  await Promise.all([all.ended, resumed.ended, fromStart.ended]);
  const at = (id: string) => all.ids.indexOf(id) + 1;
  assert.deepEqual(resumed.events.map(bare), all.events.slice(at(first.lastEventId)).map(bare));
  assert.deepEqual(fromStart.events.map(bare), all.events.slice(at(replayedId)).map(bare));
  assert.ok(resumed.events.length > 0 && fromStart.events.length > resumed.events.length);
});

for (const way of ['header', 'query'] as const) {
  test(`with the last event id as ${way}, a stream begins with snapshot, missed events, state and session.replayed`, async () => {
    const notebook = await openNotebook(server, { a: `${writing('one')}; 7` });
    const first = await openStream(server, eventsPath(notebook.id));
    await first.until('session.replayed');
    first.close();
    const run = await notebook.run(['a']);
    const id = first.lastEventId;
    const again = await openStream(
      server,
      `${eventsPath(notebook.id)}${way === 'query' ? `?lastEventId=${id}` : ''}`,
      way === 'header' ? { 'last-event-id': id } : {},
    );
    await again.until('session.replayed');
    again.close();
    const events = eventsIn(again.text);
    const [snapshot, ...rest] = events;
    assert.deepEqual([snapshot!.type, snapshot!.resumed], ['session.snapshot', true]);
    const missed = rest.filter((event) => event.missed === true);
    const state = rest.slice(missed.length);
    assert.ok(state.every((event) => event.missed === undefined));
    const texts = (of: readonly NotebookStreamEvent[]) =>
      of.flatMap(({ type, data }) => (type === 'console-output' ? [data.text] : []));
    assert.deepEqual([texts(missed), texts(state)], [['one\n'], ['one\n']]);
    const statuses = missed.flatMap(({ type, data }) => (type === 'run-status' ? [data.status] : []));
    assert.deepEqual(statuses, ['running', 'completed']);
    assert.deepEqual(state.map(brief).slice(1), [
      [
        'cell-op',
        {
          cellId: 'a',
          status: 'idle',
          stale: false,
          output: {
            channel: 'output',
            mimetype: 'text/html',
            data: "<pre class='text-xs'>7</pre>",
            text: '7',
          },
          console: [],
        },
      ],
      ['console-output', { cellId: 'a', channel: 'stdout', text: 'one\n' }],
      ['variables', { variables: [] }],
      ['run-status', { runId: run.id, status: 'completed', createdBy: 'owner' }, run.id],
      ['session.replayed', {}],
    ]);
    await notebook.close();
  });
}

test('a client with an unknown event id gets the current state', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const lastEventId of ['0000000000-5', 'x', '1', '9'.repeat(400)]) {
    const events = await EventLog.open(client, notebook.id, { lastEventId });
    assert.equal(events.types[0], 'session.snapshot', lastEventId);
    await events[Symbol.asyncDispose]();
  }
  await notebook.close();
});

const CUT_OFFS = 'troupe_stream_cutoffs_total{reason="slow_subscriber"}';

test('a subscriber that stops reading is asked to reconnect, and does not delay the kernel or other subscribers', async () => {
  // Less than the limit of a subscriber's unread bytes, so that only the stalled subscriber exceeds
  // it.
  const runBytes = 2_500 * 300;
  const notebook = await openNotebook(server, { a: 'for i in range(2_500): print(f"{i:0299d}")', b: '1' });
  const stalled = await openStream(server, eventsPath(notebook.id));
  await stalled.until('session.replayed');
  stalled.pause();
  const healthy = await notebook.events();
  const cutOffs = async () => (await scrape(server)).get(CUT_OFFS) ?? 0;
  const before = await cutOffs();
  for (let n = 1; (await cutOffs()) === before; n++) {
    assert.ok(n <= 60, 'it is not cut off');
    const run = await notebook.run(['a']);
    assert.equal(run.status, 'completed');
    await eventually('the other one has all of it', () => healthy.printed('a').length === n * runBytes);
  }
  stalled.resume();
  await stalled.ended;
  assert.deepEqual(bare(eventsIn(stalled.text).at(-1)!), {
    type: 'session.resync-required',
    sessionId: notebook.id,
    data: { reason: 'slow_subscriber' },
  });
  const again = await EventLog.open(client, notebook.id, { lastEventId: stalled.lastEventId });
  assert.equal(again.types[0], 'session.snapshot');
  await notebook.close();
  await Promise.all([healthy.ended, again.ended]);
});

test('a healthy subscriber gets ten megabytes of printed text completely and in order', async () => {
  const notebook = await openNotebook(server, { a: 'for i in range(100_000): print(f"{i:099d}")' });
  const events = await notebook.events();
  await notebook.run(['a']);
  await notebook.close();
  await events.ended;
  const expected = Array.from({ length: 100_000 }, (_, i) => `${String(i).padStart(99, '0')}\n`).join('');
  const seen = events.printed('a');
  assert.equal(seen.length, expected.length);
  assert.ok(seen === expected);
  assert.deepEqual(events.dataOf('session.resync-required'), []);
});

test('a stopping server asks subscribers to reconnect', async (t) => {
  const other = await startServer(t);
  const notebook = await openNotebook(other, { a: 'import time\nprint(1, flush=True)\ntime.sleep(600)' });
  const stream = await openStream(other, eventsPath(notebook.id));
  const runId = await notebook.submit(['a']);
  await stream.until('console-output');
  const after = await other.restart();
  await stream.ended;
  const told = eventsIn(stream.text);
  const error = { code: 'server_stopped', message: 'The server was stopped while this was running.' };
  const createdBy = 'owner';
  assert.deepEqual(told.filter(({ type }) => type === 'run-status').map(brief), [
    ['run-status', { runId, status: 'running', createdBy }, runId],
    ['run-status', { runId, status: 'failed', error, createdBy }, runId],
  ]);
  assert.deepEqual(bare(told.at(-1)!), {
    type: 'session.resync-required',
    sessionId: notebook.id,
    data: { reason: 'server_stopping' },
  });
  const run = await after.client.runs.get(runId);
  assert.deepEqual([run.status, run.error], ['failed', error]);
  await after.client.notebookSessions.close(notebook.id);
});
