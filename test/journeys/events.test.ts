import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/wire/events.ts';
import { EventLog } from '#test/support/event-log.ts';
import { scrape } from '#test/support/metrics.ts';
import { cellsOf, openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test, { TROUPE_HEARTBEAT_S: '0.1' });
const { client } = server;

const eventsPath = (sessionId: string) => `/api/v3/notebook-sessions/${sessionId}/events`;

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Returns the event without its time and without the mark of what was missed. */
function bare(event: NotebookStreamEvent): object {
  const { time, missed, ...rest } = event;
  assert.match(time, RFC_3339);
  return rest;
}

/** Type and data, and the run where there is one. */
function brief({ type, data, runId }: NotebookStreamEvent): unknown[] {
  return runId === undefined ? [type, data] : [type, data, runId];
}

test('a stream sends a snapshot, the current state, session.replayed, and then live events', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'print("hi"); x + 1' });
  const events = await notebook.events();
  const config = { disabled: false, hideCode: false, column: null, expandOutput: false };
  const [snapshot, ...replay] = events.events;
  assert.deepEqual(bare(snapshot!), {
    type: 'session.snapshot',
    sessionId: notebook.id,
    data: await notebook.record(),
  });
  const variables = { variables: [{ name: 'x', declaredBy: ['a'], usedBy: ['b'] }] };
  assert.deepEqual(replay.map(brief), [
    [
      'cells-registered',
      {
        cells: [
          { cellId: 'a', name: '', code: 'x = 1', config, version: 0 },
          { cellId: 'b', name: '', code: 'print("hi"); x + 1', config, version: 0 },
        ],
        order: ['a', 'b'],
      },
    ],
    ['cell-op', { cellId: 'a', status: 'stale', stale: true }],
    ['cell-op', { cellId: 'b', status: 'stale', stale: true }],
    ['variables', variables],
    ['session.replayed', {}],
  ]);

  const from = events.events.length;
  const run = await notebook.run(['b']);
  await notebook.close();
  await events.ended;
  const live = events.events.slice(from);
  assert.ok(live.every(({ sessionId }) => sessionId === notebook.id));
  const cellOps = (cellId: string) =>
    live.flatMap(({ type, data, runId }) => {
      const isOfRun = type === 'cell-op' && data.cellId === cellId && runId === run.id;
      return isOfRun && data.status !== undefined ? [data.status] : [];
    });
  assert.deepEqual(cellOps('a').slice(0, 3), ['queued', 'running', 'idle']);
  assert.deepEqual(cellOps('b').slice(0, 3), ['queued', 'running', 'idle']);
  const lifecycle = live.filter(({ type }) => type.startsWith('session.') || type === 'run-status');
  assert.deepEqual(lifecycle.map(brief), [
    ['run-status', { runId: run.id, status: 'running' }, run.id],
    ['session.status', { status: 'busy' }],
    ['run-status', { runId: run.id, status: 'completed' }, run.id],
    ['session.status', { status: 'ready' }],
    ['session.status', { status: 'closing' }],
    ['session.status', { status: 'closed' }],
    ['session.closed', { reason: 'closed' }],
  ]);
  const printed = live.filter(({ type }) => type === 'console-output');
  assert.deepEqual(printed.map(brief), [
    ['console-output', { cellId: 'b', channel: 'stdout', text: 'hi\n' }, run.id],
  ]);
  const outputs = live.flatMap((event) =>
    event.type === 'cell-op' && event.data.output ? [event.data.output.data] : [],
  );
  assert.deepEqual(outputs, ["<pre class='text-xs'>2</pre>"]);
});

test('the start of a session is observed through its stream', async () => {
  const { id: notebookId } = await client.notebooks.create({ serialization: { cells: cellsOf({ a: '1' }) } });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId });
  const events = await EventLog.open(client, notebookId);
  await events.status('ready');
  const seen = [
    ...events.dataOf('session.snapshot').map(({ status }) => status),
    ...events.dataOf('session.status').map(({ status }) => status),
  ];
  assert.deepEqual(seen, ['starting', 'ready']);
  await client.notebookSessions.close(notebookId);
  await events.ended;
});

test('frames are an id and one line of data, and the headers forbid proxies to buffer them', async () => {
  const notebook = await openNotebook(server, { a: 'print("a\\nb\\r\\u2028")' });
  const stream = await openStream(server, eventsPath(notebook.id));
  assert.deepEqual(
    [
      stream.status,
      stream.headers['content-type'],
      stream.headers['cache-control'],
      stream.headers['x-accel-buffering'],
    ],
    [200, 'text/event-stream', 'no-cache, no-transform', 'no'],
  );
  await stream.until('session.replayed');
  await notebook.run(['a']);
  await notebook.close();
  await stream.ended;
  assert.match(stream.text, /^retry: \d+\n/);
  const frames = stream.text
    .replace(/^(retry: \d+|:)\n/gm, '')
    .split('\n\n')
    .filter((frame) => frame !== '');
  assert.ok(frames.length > 5);
  for (const frame of frames) assert.match(frame, /^id: [0-9a-f]{10}-[0-9.]+\ndata: \{[^\n\r]*\}$/);
  const ids = frames.map((frame) => frame.slice(4, frame.indexOf('\n')));
  assert.equal(new Set(ids).size, ids.length);
});

test('heartbeats are comments that end no event', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const stream = await openStream(server, eventsPath(notebook.id));
  await stream.until('session.replayed');
  const before = stream.text.length;
  await stream.untilText((text) => (text.slice(before).match(/^:/gm) ?? []).length >= 3);
  assert.equal(stream.text.slice(before).replaceAll(':\n', ''), '');
  stream.close();
  await notebook.close();
});

test('the event of a failed run contains its error, that of a cancelled run does not', async () => {
  const notebook = await openNotebook(server, {
    a: '1 / 0',
    b: 'import time\nprint(1, flush=True)\ntime.sleep(600)',
  });
  const events = await notebook.events();
  const failed = await notebook.run(['a']);
  const cancelled = await notebook.submit(['b']);
  await events.until(({ type }) => type === 'console-output');
  await client.runs.cancel(cancelled);
  await client.waitForRun(cancelled);
  await notebook.close();
  await events.ended;
  assert.deepEqual(events.dataOf('run-status'), [
    { runId: failed.id, status: 'running' },
    { runId: failed.id, status: 'failed', error: failed.error },
    { runId: cancelled, status: 'running' },
    { runId: cancelled, status: 'cancelled' },
  ]);
});

test('code that is sent with an execution is registered with its version and saved', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x' });
  const events = await notebook.events();
  const from = events.events.length;
  const config = { name: 'first', hideCode: true };
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 2', config }] });
  const { updatedAt } = await client.notebooks.get(notebook.id);
  await notebook.close();
  await events.ended;
  const changes = events.events
    .slice(from)
    .filter(({ type }) => type === 'cells-registered' || type === 'notebook.saved');
  assert.deepEqual(
    changes.map(({ type, data }) => [type, data]),
    [
      ['notebook.saved', { updatedAt }],
      [
        'cells-registered',
        {
          cells: [
            {
              cellId: 'a',
              name: 'first',
              code: 'x = 2',
              config: { disabled: false, hideCode: true, column: null, expandOutput: false },
              version: 1,
            },
          ],
          order: ['a', 'b'],
        },
      ],
    ],
  );
});

test('a subscriber that joins after a run gets its outputs, its console and its end', async () => {
  const notebook = await openNotebook(server, { a: 'print("kept"); 7' });
  const run = await notebook.run(['a']);
  const events = await notebook.events();
  assert.deepEqual(
    events.dataOf('cell-op').map(({ cellId, status, stale, output, console }) => ({
      cellId,
      status,
      stale,
      output: output?.data,
      console: console?.map(({ channel, data }) => [channel, data]),
    })),
    [
      {
        cellId: 'a',
        status: 'idle',
        stale: false,
        output: "<pre class='text-xs'>7</pre>",
        console: [],
      },
    ],
  );
  assert.deepEqual(events.dataOf('console-output'), [{ cellId: 'a', channel: 'stdout', text: 'kept\n' }]);
  assert.deepEqual(events.dataOf('run-status'), [{ runId: run.id, status: 'completed' }]);
  await events[Symbol.asyncDispose]();
  await notebook.close();
});

test('the stream of a closed session is 204 and no stream, so that EventSource does not come back', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { lastEventId } = await openStream(server, eventsPath(notebook.id)).then(async (stream) => {
    await stream.until('session.replayed');
    return stream;
  });
  await notebook.close();
  for (const headers of [{}, { 'last-event-id': lastEventId }]) {
    const stream = await openStream(server, eventsPath(notebook.id), headers);
    await stream.ended;
    assert.deepEqual([stream.status, stream.headers['content-type'], stream.text], [204, undefined, '']);
  }
  const events = new EventLog(client, notebook.id);
  await events.ended;
  assert.deepEqual(events.events, []);
  assert.equal((await notebook.record()).status, 'closed');
});

test('all subscribers see the same frames', async () => {
  const notebook = await openNotebook(server, { a: 'print("same"); 1' });
  const logs = await Promise.all(Array.from({ length: 5 }, () => notebook.events()));
  await notebook.run(['a']);
  await notebook.close();
  await Promise.all(logs.map(({ ended }) => ended));
  const [first, ...others] = logs.map(({ events, ids }) => [events.map(bare), ids]);
  for (const other of others) assert.deepEqual(other, first);
});

test('a client that returns with its last event id continues there, and gets nothing twice', async () => {
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
  test(`with the last event id as ${way} a stream is: snapshot, what was missed, the state, session.replayed`, async () => {
    const notebook = await openNotebook(server, { a: 'print("one"); 7' });
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
    const events = again.text
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice('data: '.length)) as NotebookStreamEvent);
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
      ['run-status', { runId: run.id, status: 'completed' }, run.id],
      ['session.replayed', {}],
    ]);
    await notebook.close();
  });
}

test('an unknown event id is answered with the current state', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const lastEventId of ['0000000000-5', 'x', '1', '9'.repeat(400)]) {
    const events = await EventLog.open(client, notebook.id, { lastEventId });
    assert.equal(events.types[0], 'session.snapshot', lastEventId);
    await events[Symbol.asyncDispose]();
  }
  await notebook.close();
});

const CUT_OFFS = 'troupe_stream_cutoffs_total{reason="slow_subscriber"}';

test('a subscriber that stops reading is asked to reconnect, and neither the kernel nor other subscribers wait', async () => {
  // Less than the limit of what a subscriber may leave unread, so that only the one that stops is ever beyond it.
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
  const last = stalled.text.trimEnd().split('\n').at(-1)!;
  assert.deepEqual(bare(JSON.parse(last.slice('data: '.length))), {
    type: 'session.resync-required',
    sessionId: notebook.id,
    data: { reason: 'slow_subscriber' },
  });
  const again = await EventLog.open(client, notebook.id, { lastEventId: stalled.lastEventId });
  assert.equal(again.types[0], 'session.snapshot');
  await notebook.close();
  await Promise.all([healthy.ended, again.ended]);
});

test('a healthy subscriber gets ten megabytes of printed text complete and in order', async () => {
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
  const told = stream.text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice('data: '.length)) as NotebookStreamEvent);
  const error = { code: 'server_stopped', message: 'The server was stopped while this was running.' };
  assert.deepEqual(told.filter(({ type }) => type === 'run-status').map(brief), [
    ['run-status', { runId, status: 'running' }, runId],
    ['run-status', { runId, status: 'failed', error }, runId],
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

test('a run of a hundred cells is told in as few events as it has states, and nothing twice', async (t) => {
  const codes = Object.fromEntries(
    Array.from({ length: 100 }, (_, i) => [`c${i}`, i === 0 ? 'x0 = 0' : `x${i} = x${i - 1} + 1\nx${i}`]),
  );
  const notebook = await openNotebook(server, codes);
  const stream = await openStream(server, eventsPath(notebook.id));
  await stream.until('session.replayed');
  const before = stream.text.length;
  const run = await notebook.run([]);
  assert.equal(run.status, 'completed');
  await stream.until('"status":"completed"');
  stream.close();
  const text = stream.text.slice(before);
  const events = (text.match(/^data: .*$/gm) ?? []).map(
    (line) => JSON.parse(line.slice('data: '.length)) as NotebookStreamEvent,
  );
  t.diagnostic(`${events.length} frames, ${text.length} bytes`);
  for (const cellId of Object.keys(codes)) {
    const ops = events.flatMap(({ type, data }) =>
      type === 'cell-op' && data.cellId === cellId ? [data] : [],
    );
    assert.deepEqual(
      ops.flatMap(({ status }) => (status === undefined ? [] : [status])),
      ['queued', 'running', 'idle'],
    );
    assert.deepEqual(
      ops.flatMap(({ stale }) => (stale === undefined ? [] : [stale])),
      [false],
    );
    // Three states, and an output that comes between two batches of the kernel.
    assert.ok(ops.length <= 4, JSON.stringify(ops));
  }
  assert.ok(events.length <= 410, `${events.length} events`);
  // A frame is its data and at most 200 bytes: the id, the type, whose event it is and when it was. Usually that makes 305
  // frames and 76 kB for these cells.
  const data = events.reduce((sum, event) => sum + Buffer.byteLength(JSON.stringify(event.data)), 0);
  assert.ok(text.length - data <= 200 * events.length, `${text.length - data} bytes are not data`);
  assert.ok(text.length <= 100_000, `${text.length} bytes`);
  assert.equal(events.filter(({ type }) => type === 'variables').length, 0);
  await notebook.close();
});
