/** Outputs, figures, printed text and code that are too large for one frame of a stream. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Output } from '#src/contract/wire/output.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const MAX_INLINE_BYTES = 64 * 1024;
const MAX_FRAME_BYTES = 1024 * 1024;

let server = await startServer(test);
const { client } = server;

/** Shows a value under any media type. */
const SHOWN = `class Shown:
    def __init__(self, mimetype, data): self.pair = (mimetype, data)
    def _mime_(self): return self.pair`;
const FIGURE = `from marimo._messaging.cell_output import CellChannel
from marimo._messaging.notification_utils import CellNotificationUtils
def figure(size):
    from marimo._runtime.context import get_context
    CellNotificationUtils.broadcast_console_output(
        channel=CellChannel.MEDIA, mimetype='image/png', data='data:image/png;base64,' + 'A' * size,
        cell_id=get_context().execution_context.cell_id, status=None)`;

const assetOf = async (notebookId: string, output: Output | null | undefined) => {
  assert.ok(output?.assetId !== undefined, `${JSON.stringify(output).slice(0, 200)} names no asset`);
  return Buffer.from((await client.notebookSessions.asset(notebookId, output.assetId)).bytes);
};
const opsOf = (events: EventLog, cellId: string) =>
  events.dataOf('cell-op').filter((op) => op.cellId === cellId);
const outputOf = (events: EventLog, cellId: string) =>
  opsOf(events, cellId)
    .flatMap(({ output }) => output ?? [])
    .at(-1);
const sizeOf = (event: NotebookStreamEvent) => Buffer.byteLength(JSON.stringify(event));

test('an output of 64 KiB is in its events, and a larger output is a reference, live and in the current state', async () => {
  const notebook = await openNotebook(server, {
    shown: SHOWN,
    at: `Shown('text/html', 'é' * ${MAX_INLINE_BYTES / 2})`,
    past: `Shown('text/html', 'é' * ${MAX_INLINE_BYTES / 2} + '.')`,
    json: `Shown('application/json', '["' + 'x' * ${MAX_INLINE_BYTES} + '"]')`,
  });
  await using events = await notebook.events();
  await notebook.run({ type: 'all' });
  await using late = await notebook.events();
  for (const log of [events, late]) {
    assert.equal(outputOf(log, 'at')?.data, 'é'.repeat(MAX_INLINE_BYTES / 2));
    const past = outputOf(log, 'past');
    assert.deepEqual([past?.mimetype, past?.channel, past?.data], ['text/html', 'output', undefined]);
    assert.equal((await assetOf(notebook.id, past)).toString(), `${'é'.repeat(MAX_INLINE_BYTES / 2)}.`);
    const json = (await assetOf(notebook.id, outputOf(log, 'json'))).toString();
    assert.equal(json, `["${'x'.repeat(MAX_INLINE_BYTES)}"]`);
  }
  assert.equal(outputOf(events, 'past')?.assetId, outputOf(late, 'past')?.assetId);
  await notebook.close();
});

test('a referenced output is served by its hash until its cell has another output, in this session only', async () => {
  const code = (letter: string) => `import marimo as mo\nmo.Html('${letter}' * 100_000)`;
  const notebook = await openNotebook(server, { a: code('a'), b: '1' });
  const other = await openNotebook(server, { a: code('a') });
  await using events = await notebook.events();
  await notebook.run(['a']);
  const assetId = outputOf(events, 'a')?.assetId ?? '';
  const path = `/api/v3/notebook-sessions/${notebook.id}/assets/${assetId}`;
  const get = (headers: Readonly<Record<string, string>> = {}) =>
    fetch(server.baseUrl + path, {
      headers: {
        authorization: `Bearer ${server.owner.token}`,
        'service-workspace-id': server.owner.workspaceId,
        ...headers,
      },
    });
  const whole = await get();
  const bytes = Buffer.from(await whole.arrayBuffer());
  const etag = `"${createHash('sha256').update(bytes).digest('hex')}"`;
  assert.deepEqual(
    [whole.status, bytes.toString(), whole.headers.get('etag')],
    [200, 'a'.repeat(100_000), etag],
  );
  assert.equal(whole.headers.get('content-disposition'), 'attachment');
  assert.equal((await get({ 'if-none-match': etag })).status, 304);
  assert.equal((await get({ range: 'bytes=0-9' })).status, 206);
  assert.equal((await fetch(server.baseUrl + path)).status, 401);
  const refused = (sessionId: string) =>
    client.notebookSessions.asset(sessionId, assetId).then(
      () => 'served',
      (error) => error.code,
    );
  assert.equal(await refused(other.id), 'not_found');
  await notebook.run(['b']);
  assert.equal(await refused(notebook.id), 'served', 'its cell still shows it');
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: code('b') }] });
  assert.equal(await refused(notebook.id), 'not_found');
  assert.equal((await assetOf(notebook.id, outputOf(events, 'a'))).toString(), 'b'.repeat(100_000));
  await notebook.close();
  assert.equal(await refused(notebook.id), 'not_found');
  await other.close();
});

test('a referenced output is served while its run continues', async () => {
  const code = "import marimo as mo, time\nmo.output.replace(mo.Html('r' * 100_000))\ntime.sleep(1000)";
  const notebook = await openNotebook(server, { a: code });
  await using events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'a' && data.output?.assetId !== undefined,
  );
  assert.equal((await assetOf(notebook.id, outputOf(events, 'a'))).toString(), 'r'.repeat(100_000));
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  await notebook.close();
});

test('a large value and a large figure of a code call are references in its events, and whole in its result', async () => {
  const notebook = await openNotebook(server, { figure: FIGURE, shown: SHOWN });
  await notebook.run({ type: 'all' });
  await using events = await notebook.events();
  const png = (size: number) => `data:image/png;base64,${'A'.repeat(size)}`;
  const code = `print('p' * 300_000)
figure(100_000)
figure(1000)
Shown('text/html', 'v' * 100_000)`;
  const answer = await client.code.execute(notebook.id, code, { toolCallId: 'large' });
  assert.deepEqual(
    [answer.output?.data, answer.media.map(({ data }) => data), answer.stdout],
    ['v'.repeat(100_000), [png(100_000), png(1000)], `${'p'.repeat(300_000)}\n`],
  );
  await events.until(({ type, data }) => type === 'execution-completed' && data.tool_call_id === 'large');
  const [end] = events.dataOf('execution-completed');
  assert.ok(end !== undefined);
  const { output, media, stdout } = end;
  assert.equal((await assetOf(notebook.id, output)).toString(), 'v'.repeat(100_000));
  assert.deepEqual(await assetOf(notebook.id, media[0]), Buffer.from('A'.repeat(100_000), 'base64'));
  assert.deepEqual(media[1], { mimetype: 'image/png', data: png(1000) });
  assert.match(stdout, /^p+\n… \d+ characters left out …\np+\n$/);
  assert.equal(events.printed('__scratch__'), answer.stdout);
  const ops = opsOf(events, '__scratch__');
  assert.deepEqual(
    ops.flatMap((op) => op.output?.assetId ?? []),
    [output?.assetId],
  );
  assert.deepEqual(
    ops.flatMap((op) => op.console ?? []).flatMap(({ assetId }) => assetId ?? []),
    [media[0]?.assetId],
  );
  await client.code.execute(notebook.id, '1');
  await assert.rejects(assetOf(notebook.id, output), { code: 'not_found' });
  await notebook.close();
});

test('no frame of outputs, figures, printed text, errors and code has more than 1 MiB', async () => {
  const notebook = await openNotebook(server, {
    figure: FIGURE,
    shown: SHOWN,
    printed: "import sys\nfor _ in range(4): sys.stdout.write('\\x1b' * 200_000)",
    figures: 'for _ in range(40): figure(60_000)',
    wide: `import pandas as pd\npd.DataFrame({f'c{i}': ['\\x1b' * 900] * 100 for i in range(90)})`,
    value: "Shown('text/plain', '\\x1b' * 65_536)",
    failing: "raise ValueError('\\x1b' * 200_000)",
    ...Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`long${i}`, `#${'"'.repeat(250_000)}`])),
  });
  await using events = await notebook.events();
  await notebook.run({ type: 'all' });
  await client.code.execute(
    notebook.id,
    "for _ in range(40): figure(60_000)\nprint('\\x1b' * 300_000)\nraise ValueError('\\x1b' * 200_000)",
    {
      toolCallId: 'end',
    },
  );
  await events.until(({ type, data }) => type === 'execution-completed' && data.tool_call_id === 'end');
  await using late = await notebook.events();
  for (const log of [events, late])
    for (const event of log.events)
      assert.ok(sizeOf(event) <= MAX_FRAME_BYTES, `${event.type}: ${sizeOf(event)} bytes`);
  assert.equal(events.printed('printed').length, 800_000);
  assert.equal(opsOf(events, 'figures').flatMap((op) => op.console ?? []).length, 40);
  const cells = late.dataOf('cells-registered');
  assert.ok(cells.length > 1);
  assert.deepEqual(
    cells.flatMap((list) => list.cells.map(({ cellId }) => cellId)),
    cells[0]?.order,
  );
  await notebook.close();
});

test('the outputs of a sleeping session are read without waking the session, also after a restart', async () => {
  const notebook = await openNotebook(server, { a: "import marimo as mo\nmo.Html('s' * 100_000)" });
  await notebook.run(['a']);
  const read = async () => {
    await using events = await EventLog.open(server.client, notebook.id, { observe: true });
    const output = outputOf(events, 'a');
    const { bytes } = await server.client.notebookSessions.asset(notebook.id, output?.assetId ?? '');
    return [output?.assetId, Buffer.from(bytes).toString()];
  };
  const before = await read();
  assert.equal(before[1], 's'.repeat(100_000));
  await client.notebookSessions.hibernate(notebook.id);
  assert.deepEqual(await read(), before);
  server = await server.restart();
  assert.deepEqual(await read(), before);
  assert.deepEqual((await server.client.kernels()).items, []);
});
