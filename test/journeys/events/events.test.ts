/** The event stream of a notebook session: its frames, their order and their contents. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { EventLog } from '#test/support/event-log.ts';
import { cellsOf, openNotebook, writing } from '#test/support/notebook-fixture.ts';
import { withoutKernels } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { bare, brief, eventsIn, eventsPath } from './stream-events.ts';

const server = await startServer(test, { TROUPE_HEARTBEAT_S: '0.1' });
const { client } = server;

test('a stream sends a snapshot, the current state, session.replayed, and then live events', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: `${writing('hi')}; x + 1` });
  const events = await notebook.events();
  const config = { disabled: false, hideCode: false, column: null, expandOutput: false };
  const [snapshot, ...replay] = events.events;
  assert.deepEqual(bare(snapshot!), {
    type: 'session.snapshot',
    sessionId: notebook.id,
    data: await notebook.record(),
  });
  const variables = { variables: [{ name: 'x', declaredBy: ['a'], usedBy: ['b'] }] };
  const version = Date.parse((await client.notebooks.get(notebook.id)).updatedAt);
  assert.deepEqual(replay.map(brief), [
    [
      'cells-registered',
      {
        cells: [
          { cellId: 'a', name: '', code: 'x = 1', config, version },
          { cellId: 'b', name: '', code: `${writing('hi')}; x + 1`, config, version },
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
    ['run-status', { runId: run.id, status: 'running', createdBy: 'owner' }, run.id],
    ['session.status', { status: 'busy' }],
    ['run-status', { runId: run.id, status: 'completed', createdBy: 'owner' }, run.id],
    ['session.status', { status: 'ready' }],
    ['session.status', { status: 'closing' }],
    ['session.status', { status: 'closed' }],
    ['session.closed', { reason: 'closed', closedBy: 'owner' }],
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
  // The kernel becomes ready only when the stream is followed.
  const events = await withoutKernels(server.pid, async () => {
    await client.notebookSessions.open({ notebookId, environmentId });
    return EventLog.open(client, notebookId);
  });
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

test('the last event of a failed run contains the error, and the last event of a cancelled run has no error', async () => {
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
    { runId: failed.id, status: 'running', createdBy: 'owner' },
    { runId: failed.id, status: 'failed', createdBy: 'owner', error: failed.error },
    { runId: cancelled, status: 'running', createdBy: 'owner' },
    { runId: cancelled, status: 'cancelled', createdBy: 'owner' },
  ]);
});

test('code that is sent with an execution is registered with its version and saved', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x' });
  const events = await notebook.events();
  const from = events.events.length;
  const config = { name: 'first', hideCode: true };
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 2', config }] });
  const { updatedAt } = await client.notebooks.get(notebook.id);
  const [a] = (await notebook.record()).cells;
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
              version: a?.version,
            },
          ],
          order: ['a', 'b'],
        },
      ],
    ],
  );
});

test('a subscriber that joins after a run gets its outputs, its console and its end', async () => {
  const notebook = await openNotebook(server, { a: `${writing('kept')}; 7` });
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
  assert.deepEqual(events.dataOf('run-status'), [{ runId: run.id, status: 'completed', createdBy: 'owner' }]);
  await events[Symbol.asyncDispose]();
  await notebook.close();
});

test('the stream of a closed session is a 204, so that EventSource does not reconnect', async () => {
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

test('a run of a hundred cells publishes each state of a cell once', async (t) => {
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
  const events = eventsIn(text);
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
