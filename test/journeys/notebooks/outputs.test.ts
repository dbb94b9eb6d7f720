/** Outputs of cells: figures within printed text, values of any kind, text and tables. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

/** A class whose `_mime_` returns its argument. */
const SHOWN =
  'class Shown:\n    def __init__(self, *pair): self.pair = pair\n    def _mime_(self): return self.pair';
const PNG_HEAD = Buffer.from('89504e470d0a1a0a', 'hex');
const PLOT = `import matplotlib.pyplot as plt, numpy as np
plt.figure(figsize=(8, 6))
plt.imshow(np.random.default_rng(1).random((400, 400)))
print('before')
plt.show()
print('after')`;

const notebook = await openNotebook(server, {
  shown: SHOWN,
  plot: PLOT,
  odd: "Shown('text/html', 5)",
  pair: `import base64
class Seaborn:
    def _repr_png_(self): return base64.b64decode('${PNG_HEAD.toString('base64')}'), {'width': 1}
Seaborn()`,
  after: '1 + 1',
  frame: `import pandas as pd
pd.DataFrame({'n': [1, 2**60], 'when': pd.to_datetime(['2026-01-02', None]), 'x': [0.5, float('nan')]})`,
  long: `import polars as pl
pl.DataFrame({'i': range(1000)})`,
  heading: `import marimo as mo
mo.md('# Title')`,
  failing: '1 / 0',
});
const cells = notebook.notebook.serialization.cells.map(({ cell_id }) => cell_id);
const events = await notebook.events();
const run = await notebook.run({ type: 'all' });

function resultOf(cellId: string) {
  const result = results(run).find((one) => one.cellId === cellId);
  assert.ok(result !== undefined);
  return result;
}

function outputOf(cellId: string) {
  const [output] = resultOf(cellId).outputs;
  assert.ok(output !== undefined, `${cellId} shows nothing`);
  return output;
}

test('a large figure of plt.show() is an asset of the run, in its place between the printed texts', async () => {
  const { console } = resultOf('plot');
  assert.deepEqual(
    console.map(({ channel, mimetype }) => [channel, mimetype]),
    [
      ['stdout', 'text/plain'],
      ['media', 'image/png'],
      ['stdout', 'text/plain'],
    ],
  );
  const figure = console[1]!;
  assert.ok('assetId' in figure);
  const { bytes, contentType } = await client.runs.asset(run.id, figure.assetId);
  assert.deepEqual([Buffer.from(bytes).subarray(0, 8), contentType], [PNG_HEAD, 'image/png']);
  assert.ok(bytes.byteLength > 64 * 1024);
});

test('a figure of plt.show() is in exports of the notebook', async () => {
  for (const format of ['ipynb', 'html'] as const) {
    const { bytes } = await client.notebooks.export(notebook.id, format);
    assert.match(Buffer.from(bytes).toString('utf8'), /iVBORw0KGgo/, format);
  }
});

test('figures that code outside of cells shows are in the result of the call', async () => {
  const result = await client.code.execute(notebook.id, `${PLOT}\nNone`);
  assert.deepEqual(
    [result.success, result.stdout, result.media.map(({ mimetype }) => mimetype)],
    [true, 'before\nafter\n', ['image/png']],
  );
  assert.match(String(result.media[0]?.data), /^data:image\/png;base64,iVBORw0KGgo/);
});

test('for an output that cannot be sent a warning names the cell, and the other outputs arrive', () => {
  assert.deepEqual(statuses(run), {
    ...Object.fromEntries(cells.map((id) => [id, 'success'])),
    failing: 'error',
  });
  assert.deepEqual(resultOf('odd').outputs, []);
  const reason = 'the value to show as text/html is of type int, where text or bytes are needed.';
  assert.deepEqual(
    (run.output?.parts ?? [])
      .flatMap((part) => (part.type === 'warning' ? [part] : []))
      .map(({ code, message, cellId }) => [code, message, cellId]),
    [['output_lost', `An output of the cell odd is not shown, because ${reason}`, 'odd']],
  );
  assert.equal(printed(resultOf('odd')), `An output of this cell is not shown, because ${reason}\n`);
});

test('a picture with metadata is shown', () => {
  const output = outputOf('pair');
  assert.deepEqual(
    [output.mimetype, 'data' in output && output.data],
    ['image/png', `data:image/png;base64,${PNG_HEAD.toString('base64')}`],
  );
});

test('every output has a text form', () => {
  const texts = (ids: readonly string[]) => ids.map((id) => outputOf(id).text);
  assert.deepEqual(texts(['after', 'heading', 'failing']), [
    '2',
    '# Title',
    'ZeroDivisionError: division by zero',
  ]);
  assert.match(outputOf('frame').text ?? '', /1152921504606846976/);
  const traceback = resultOf('failing').console.find(({ mimetype }) => mimetype.endsWith('traceback'));
  assert.match(traceback?.text ?? '', /^Traceback .*1 \/ 0.*ZeroDivisionError: division by zero\n$/s);
});

test('a table has its columns, types, rows and number of rows as JSON', () => {
  assert.deepEqual(outputOf('frame').table, {
    columns: [
      { name: 'n', type: 'int64' },
      { name: 'when', type: outputOf('frame').table?.columns[1]?.type },
      { name: 'x', type: 'float64' },
    ],
    rows: [
      [1, '2026-01-02T00:00:00', 0.5],
      ['1152921504606846976', null, null],
    ],
    rowCount: 2,
    columnCount: 3,
  });
  const { table } = outputOf('long');
  assert.deepEqual(
    [table?.rowCount, table?.rows.length, table?.columns],
    [1000, 100, [{ name: 'i', type: 'Int64' }]],
  );
});

test('events and results of code have text and tables as well', async () => {
  const event = await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'frame' && data.output !== undefined,
  );
  assert.ok(event.type === 'cell-op');
  assert.deepEqual(event.data.output?.table, outputOf('frame').table);
  const { output } = await client.code.execute(notebook.id, '[1, "a"]');
  assert.deepEqual(output, { mimetype: 'application/json', data: '[1, "a"]', text: "[1, 'a']" });
});
