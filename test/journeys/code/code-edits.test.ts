import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { block, blockWith } from '#test/support/code-block.ts';
import { callCode } from '#test/support/code-call.ts';
import { type OpenNotebook, openNotebook, results } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

const edit = (notebook: OpenNotebook, ...lines: string[]) => callCode(client, notebook.id, block(...lines));
const saved = async (notebook: OpenNotebook) => (await client.notebooks.get(notebook.id)).serialization;
/** Code and options of the saved cells, without the ids that code mode generated. */
async function cells(notebook: OpenNotebook) {
  return (await saved(notebook)).cells.map(({ code, options }) => [code, options]);
}
/** Opens the same notebook in a new session. */
async function reopened(notebook: OpenNotebook): Promise<void> {
  await notebook.close();
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: notebook.id, environmentId, mode: 'edit' });
  await client.notebookSessions.waitUntilReady(notebook.id);
}

test('cells are created, edited, moved and deleted in one block, and saved before the response', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2', c: 'z = 3' });
  const before = notebook.notebook.updatedAt;
  const answer = await edit(
    notebook,
    'print([(cell.id, cell.code) for cell in ctx.cells])',
    'ctx.create_cell("first = 0", before="a", hide_code=False)',
    'ctx.create_cell("last = 9")',
    'ctx.edit_cell("a", code="x = 10")',
    'ctx.move_cell("c", before="a")',
    'ctx.delete_cell("b")',
  );
  assert.deepEqual([answer.success, answer.errors], [true, []]);
  assert.match(answer.stdout, /^\[\('a', 'x = 1'\), \('b', 'y = 2'\), \('c', 'z = 3'\)\]\n/);
  const after = await client.notebooks.get(notebook.id);
  assert.ok(after.updatedAt > before);
  assert.deepEqual(
    after.serialization.cells.map(({ code, options }) => [code, options]),
    [
      ['first = 0', {}],
      ['z = 3', {}],
      ['x = 10', {}],
      ['last = 9', { hide_code: true }],
    ],
  );
  assert.deepEqual(
    (await notebook.record()).cells.map(({ cellId }) => cellId),
    after.serialization.cells.map(({ cell_id }) => cell_id),
  );
  await notebook.close();
});

test('cell names and layout are saved as options of cells, and app options as options of the app; all are restored', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2' }, { options: { b: { column: 1 } } });
  await edit(
    notebook,
    'ctx.create_cell("z = 3", name="zed", column=2, disabled=True, expand_output=True)',
    'ctx.edit_cell("a", name="first", hide_code=True)',
    'ctx.set_app_options(width="columns", app_title="Mine")',
  );
  const layout: unknown[] = [
    ['x = 1', { hide_code: true, name: 'first' }],
    ['y = 2', { column: 1 }],
    ['z = 3', { hide_code: true, name: 'zed', column: 2, disabled: true, expand_output: true }],
  ];
  assert.deepEqual(await cells(notebook), layout);
  await edit(notebook, 'ctx.edit_cell("zed", disabled=False, hide_code=False, expand_output=False)');
  layout[2] = ['z = 3', { name: 'zed', column: 2 }];
  await reopened(notebook);
  assert.deepEqual(await cells(notebook), layout);
  assert.deepEqual((await saved(notebook)).app.options, { width: 'columns', app_title: 'Mine' });
  const seen = await edit(
    notebook,
    'print(ctx.app_options)',
    'print([(c.name, c.config.column, c.config.hide_code) for c in ctx.cells])',
  );
  assert.equal(
    seen.stdout,
    "{'width': 'columns', 'app_title': 'Mine'}\n[('first', None, True), ('', 1, False), ('zed', 2, False)]\n",
  );
  await notebook.close();
});

test('a disabled cell does not run until it is enabled', async () => {
  const notebook = await openNotebook(server, { a: 'print("ran")' });
  assert.equal((await edit(notebook, 'ctx.edit_cell("a", disabled=True)')).success, true);
  assert.equal((await notebook.record()).cells[0]?.status, 'disabled');
  assert.doesNotMatch((await edit(notebook, 'ctx.run_cell("a")')).stdout, /^ran/);
  await edit(notebook, 'ctx.edit_cell("a", disabled=False)');
  assert.match((await edit(notebook, 'ctx.run_cell("a")')).stdout, /^ran/);
  await notebook.close();
});

test('app options that marimo does not know are refused, and options from a failing block are not saved', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const lines of [
    ['ctx.set_app_options(width="broad")'],
    ['ctx.set_app_options(nonsense=1)'],
    ['ctx.set_app_options(width="full")', '1 / 0'],
    ['ctx.set_app_options(width="full")', 'ctx.create_cell("def")'],
  ]) {
    assert.equal((await edit(notebook, ...lines)).success, false);
    assert.deepEqual(await client.notebooks.get(notebook.id), notebook.notebook, lines.join());
  }
  await notebook.close();
});

test('cells run with their dependencies; a reopened session has code and outputs, but no variables', async () => {
  const notebook = await openNotebook(server, { a: 'x = 20', b: 'y = x * 2' });
  const { success, stdout } = await edit(
    notebook,
    'new = ctx.create_cell("print(y + 2)\\ny + 2", name="answer")',
    'ctx.run_cell(new)',
  );
  assert.deepEqual([success, stdout.split('\n')[0]], [true, '42']);
  assert.equal((await callCode(client, notebook.id, 'print(x, y)')).stdout, '20 40\n');
  await reopened(notebook);
  assert.equal((await callCode(client, notebook.id, 'y')).errors[0]?.type, 'NameError');
  assert.deepEqual(await cells(notebook), [
    ['x = 20', {}],
    ['y = x * 2', {}],
    ['print(y + 2)\ny + 2', { hide_code: true, name: 'answer' }],
  ]);
  const { stdout: shown } = await edit(notebook, 'print(ctx.cells["answer"].output.data)');
  assert.match(shown, />42</, 'the last output is kept');
  const run = await notebook.run([(await saved(notebook)).cells[2]!.cell_id]);
  assert.deepEqual([run.status, results(run).length], ['completed', 3]);
  await notebook.close();
});

const REJECTED = {
  'a name that is already defined': [
    ['ctx.create_cell("fine = 1")', 'ctx.create_cell("x = 2")'],
    'RuntimeError',
    /'x' is already defined in cell 'a'/,
  ],
  'a cycle': [
    ['ctx.cells["a"].code', 'ctx.create_cell("q = x")', 'ctx.edit_cell("a", code="x = q")'],
    'RuntimeError',
    /Cycles detected/,
  ],
  'code that does not parse': [['ctx.delete_cell("b")', 'ctx.create_cell("def")'], 'SyntaxError', /./],
  'two edits that contradict each other': [
    ['ctx.edit_cell("b", name="other")', 'ctx.delete_cell("b")'],
    'ValueError',
    /updated in the same batch/,
  ],
  'a missing cell': [['ctx.create_cell("w = 1")', 'ctx.delete_cell("zz")'], 'KeyError', /zz/],
  'an invalid name': [
    ['ctx.create_cell("w = 1")', 'ctx.create_cell("v = 1", name="not a name")'],
    'ValueError',
    /Invalid cell name/,
  ],
  'an exception of its own': [['ctx.create_cell("w = 1")', 'raise OSError("mine")'], 'OSError', /mine/],
} as const;

for (const [what, [lines, type, message]] of Object.entries(REJECTED)) {
  test(`an edit with ${what} is rejected as a whole`, async () => {
    const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = x' });
    await notebook.run(['b']);
    const before = await client.notebooks.get(notebook.id);
    const { success, errors } = await edit(notebook, ...lines);
    assert.deepEqual([success, errors.length, errors[0]?.type, errors[0]?.cellId], [false, 1, type, null]);
    assert.match(errors[0]!.message, message);
    assert.deepEqual(await client.notebooks.get(notebook.id), before, 'nothing is saved');
    assert.deepEqual(
      (await notebook.record()).cells.map(({ cellId, status }) => `${cellId} ${status}`),
      ['a idle', 'b idle'],
    );
    assert.equal((await callCode(client, notebook.id, 'print(x, y)')).stdout, '1 1\n');
    await notebook.close();
  });
}

test('code that commits an edit and then fails leaves the edit in the notebook', async () => {
  const notebook = await openNotebook(server, { a: 'x = 0' });
  const { success, errors } = await edit(
    notebook,
    'ctx.run_cell(ctx.create_cell("print(\'about to\')\\n1 / x", name="bad"))',
  );
  const [, bad] = (await saved(notebook)).cells;
  assert.deepEqual(
    [success, errors],
    [false, [{ type: 'ZeroDivisionError', message: 'division by zero', cellId: bad!.cell_id }]],
  );
  assert.equal(bad!.code, "print('about to')\n1 / x");
  assert.equal((await notebook.record()).cells[1]?.status, 'error');
  const raised = await callCode(
    client,
    notebook.id,
    `${block('ctx.create_cell("kept = 1")')}raise ValueError(1)`,
  );
  assert.deepEqual([raised.success, raised.errors[0]?.type], [false, 'ValueError']);
  assert.equal((await saved(notebook)).cells[2]?.code, 'kept = 1');
  await notebook.close();
});

test('after an edit that skips validation, the notebook reports its errors and refuses runs', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const code = blockWith('skip_validation=True', 'ctx.create_cell("x = 2", name="twice")');
  const { success, errors } = await callCode(client, notebook.id, code);
  assert.deepEqual([success, errors.map(({ type }) => type)], [false, ['multiple-defs']]);
  assert.equal((await saved(notebook)).cells.length, 2);
  const unrelated = await edit(notebook, 'ctx.create_cell("fine = 1")');
  assert.deepEqual([unrelated.success, unrelated.errors], [true, []], 'an old error is not this code’s');
  const asked = await edit(notebook, 'ctx.run_cell("twice")');
  const twice = (await saved(notebook)).cells[1]!.cell_id;
  assert.deepEqual(
    [asked.success, asked.errors[0]?.type, asked.errors[0]?.cellId],
    [false, 'multiple-defs', twice],
  );
  assert.equal((await edit(notebook, 'ctx.delete_cell("twice")', 'ctx.run_cell("a")')).success, true);
  await notebook.close();
});

test('dependents of a cell that was edited without running are stale, and use the new value when they run', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = x', c: 'z = y' });
  await notebook.run([]);
  await edit(notebook, 'ctx.cells["a"].code', 'ctx.edit_cell("a", code="x = 5")');
  assert.deepEqual(
    (await notebook.record()).cells.map(({ stale }) => stale),
    [true, true, true],
  );
  await edit(notebook, 'ctx.run_cell("c")');
  assert.equal((await callCode(client, notebook.id, 'print(z)')).stdout, '5\n');
  await notebook.close();
});

test('several blocks in one call, even nested blocks, are all saved', async () => {
  const notebook = await openNotebook(server, {});
  const nested = block(
    'ctx.create_cell("outer = 1")',
    'async with cm.get_context() as inner:',
    '    inner.create_cell("nested = 1")',
  );
  for (let round = 0; round < 10; round++) {
    const code = `${nested}${block('ctx.create_cell("last = 1")')}`;
    assert.equal((await callCode(client, notebook.id, code)).success, true);
    assert.deepEqual((await saved(notebook)).cells.map((cell) => cell.code).sort(), [
      'last = 1',
      'nested = 1',
      'outer = 1',
    ]);
    await edit(notebook, 'for cell in ctx.cells: ctx.delete_cell(cell.id)');
    assert.deepEqual((await saved(notebook)).cells, []);
  }
  await notebook.close();
});

test('a setup cell is created by its name and runs before all others', async () => {
  const notebook = await openNotebook(server, { a: 'math.pi' });
  const { success, errors } = await edit(
    notebook,
    'ctx.create_cell("import math", name="setup", before="a")',
    'ctx.run_cell("a")',
  );
  assert.deepEqual([success, errors], [true, []]);
  const setup = (await saved(notebook)).cells[0]!;
  assert.deepEqual([setup.cell_id, setup.code], ['setup', 'import math']);
  await notebook.close();
});

test('setting the value of a widget runs the cells that depend on it', async () => {
  const notebook = await openNotebook(server, {
    a: 'import marimo as mo',
    b: 'slider = mo.ui.slider(0, 10)\nslider',
    c: 'print("at", slider.value)',
  });
  await notebook.run([]);
  const { success } = await edit(notebook, 'ctx.set_ui_value(ctx.globals["slider"], 7)');
  assert.equal(success, true);
  assert.equal((await callCode(client, notebook.id, 'print(slider.value)')).stdout, '7\n');
  await notebook.close();
});

test('the example of code mode in docs/api.md works as described', async () => {
  const blocks = [...readFileSync('docs/api.md', 'utf8').matchAll(/```python\n([\s\S]*?)```/g)];
  const python = blocks.find(([, code]) => code?.includes('ctx.'))?.[1] ?? '';
  const notebook = await openNotebook(server, { numbers: 'numbers = [1, 2, 3, 4]' });
  const { success, stdout } = await callCode(client, notebook.id, python);
  assert.deepEqual([success, stdout.includes("'run': ['numbers', ")], [true, true]);
  assert.deepEqual((await saved(notebook)).app.options, { width: 'full' });
  assert.equal((await callCode(client, notebook.id, 'total')).output?.data, "<pre class='text-xs'>10</pre>");
  await notebook.close();
});
