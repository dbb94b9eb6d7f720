import assert from 'node:assert/strict';
import test from 'node:test';
import { block, blockWith } from '#test/support/code-block.ts';
import { callCode } from '#test/support/code-call.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const EDIT = 'ctx.edit_cell("a", code="x = 2")';

/** `edited`, or the type of the error. */
async function outcome(notebook: OpenNotebook, ...lines: string[]): Promise<string> {
  const { success, errors } = await callCode(client, notebook.id, block(...lines));
  return success ? 'edited' : (errors[0]?.type ?? '?');
}

test('code must be read through ctx.cells before it is edited, in the same call or an earlier one', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 1' });
  assert.equal(await outcome(notebook, EDIT), 'StaleCellError');
  const [a] = (await client.notebooks.get(notebook.id)).serialization.cells;
  assert.equal(a?.code, 'x = 1');
  assert.equal(await outcome(notebook, 'ctx.cells["b"].code', EDIT), 'StaleCellError', 'another cell');
  assert.equal(await outcome(notebook, 'ctx.cells["a"].code', EDIT), 'edited');
  assert.equal(await outcome(notebook, 'ctx.edit_cell("b", code="y = 2")'), 'edited', 'read two calls ago');
  assert.equal(await outcome(notebook, 'ctx.edit_cell("a", code="x = 3")'), 'edited', 'written by itself');
  await notebook.close();
});

const READS = {
  'its code': ['ctx.cells["a"].code', 'edited'],
  'its code by index': ['ctx.cells[0].code', 'edited'],
  'the code of every cell': ['[cell.code for cell in ctx.cells]', 'edited'],
  'how it prints': ['repr(ctx.cells["a"])', 'edited'],
  'the cell alone': ['ctx.cells["a"]', 'StaleCellError'],
  'its name and status': ['(ctx.cells["a"].name, ctx.cells["a"].status)', 'StaleCellError'],
  'a search': ['(ctx.cells.find("x"), ctx.cells.grep("x"))', 'StaleCellError'],
} as const;

for (const [what, [line, expected]] of Object.entries(READS)) {
  test(`reading ${what} ${expected === 'edited' ? 'is enough' : 'is not enough'} to edit a cell`, async () => {
    const notebook = await openNotebook(server, { a: 'x = 1' });
    await callCode(client, notebook.id, block(line));
    assert.equal(await outcome(notebook, EDIT), expected);
    await notebook.close();
  });
}

test('code that changed elsewhere must be read again, and events do not count as reading', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  await callCode(client, notebook.id, block('ctx.cells["a"].code'));
  await using events = await notebook.events();
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 10' }] });
  await events.until(
    ({ type, data }) => type === 'cells-registered' && data.cells.some(({ code }) => code === 'x = 10'),
  );
  assert.equal(await outcome(notebook, EDIT), 'StaleCellError');
  assert.equal(await outcome(notebook, 'ctx.cells["a"].code', EDIT), 'edited');
  await notebook.close();
});

test('after running the same code or changing its settings, an edit needs no new reading', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  await callCode(client, notebook.id, block('ctx.cells["a"].code'));
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 1', config: { hideCode: true } }] });
  assert.equal(await outcome(notebook, EDIT), 'edited');
  await notebook.close();
});

test('after the kernel was replaced, code must be read again', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  await callCode(client, notebook.id, block('ctx.cells["a"].code'));
  const died = await callCode(client, notebook.id, 'import os\nos._exit(1)');
  assert.equal(died.errors[0]?.type, 'kernel_exited');
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal(await outcome(notebook, EDIT), 'StaleCellError');
  assert.equal(await outcome(notebook, 'ctx.cells["a"].code', EDIT), 'edited');
  await notebook.close();
});

test('settings, moves, deletions, cells without code, and an explicit opt-out require no reading', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 1', empty: '' });
  assert.equal(await outcome(notebook, 'ctx.edit_cell("a", hide_code=True)'), 'edited');
  assert.equal(await outcome(notebook, 'ctx.move_cell("a", after="b")'), 'edited');
  assert.equal(await outcome(notebook, 'ctx.delete_cell("b")'), 'edited');
  assert.equal(await outcome(notebook, 'ctx.edit_cell("empty", code="z = 1")'), 'edited');
  const blind = await callCode(client, notebook.id, blockWith('skip_staleness_check=True', EDIT));
  assert.equal(blind.success, true);
  await notebook.close();
});
