import assert from 'node:assert/strict';
import test from 'node:test';
import { block, blockWithResult } from '#test/support/code-block.ts';
import { callCode } from '#test/support/code-call.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

interface BlockResult {
  readonly revision: number;
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  readonly run: readonly string[];
  readonly outputs: Readonly<Record<string, { readonly mimetype: string; readonly data: string }>>;
  readonly console: Readonly<Record<string, readonly { readonly channel: string; readonly data: string }[]>>;
  readonly errors: readonly { readonly cell_id: string; readonly type: string }[];
}

/** The `ctx.result` of a block, also when the block raised. */
async function resultOf(notebook: OpenNotebook, ...lines: string[]): Promise<BlockResult> {
  const { stdout } = await callCode(client, notebook.id, blockWithResult(...lines));
  return JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
}

test('a block reports its changed, deleted and run cells, with outputs, consoles and errors by cell', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = x', c: 'z = 1', d: 'w = 1' });
  const result = await resultOf(
    notebook,
    'ctx.cells["a"].code',
    'ctx.edit_cell("a", code="x = 5\\nprint(\'a\')")',
    'ctx.create_cell("import sys\\nprint(x, file=sys.stderr)\\ny + x", name="shown")',
    'ctx.create_cell("1 / 0", name="bad")',
    'ctx.move_cell("d", before="a")',
    'ctx.delete_cell("c")',
    'ctx.run_cell("shown")',
    'ctx.run_cell("bad")',
  );
  const cells = (await client.notebooks.get(notebook.id)).serialization.cells;
  const [shown, bad] = ['shown', 'bad'].map(
    (name) => cells.find(({ options }) => options.name === name)!.cell_id,
  );
  const { revision, changed, deleted, run, outputs, console, errors } = result;
  assert.deepEqual(Object.keys(result).sort(), [
    'changed',
    'console',
    'deleted',
    'errors',
    'outputs',
    'revision',
    'run',
  ]);
  assert.equal(revision, 1);
  assert.deepEqual([...changed].sort(), ['a', 'd', shown, bad].sort());
  assert.deepEqual(deleted, ['c']);
  assert.deepEqual([...run].sort(), ['a', 'b', shown, bad].sort());
  assert.deepEqual(Object.keys(outputs), [shown]);
  assert.match(outputs[shown!]!.data, />10</);
  assert.deepEqual(
    [console.a, console[shown!], console.b].map((lines) => lines?.map((l) => `${l.channel} ${l.data}`)),
    [['stdout a\n'], ['stderr 5\n'], []],
  );
  assert.match(console[bad!]?.map(({ data }) => data).join('') ?? '', /ZeroDivisionError/);
  assert.deepEqual(
    errors.map(({ cell_id, type }) => [cell_id, type]),
    [[bad, 'exception']],
  );
  await notebook.close();
});

const NOTHING = { changed: [], deleted: [], run: [], outputs: {}, console: {}, errors: [] };

test('a block that is rejected, raises, or does nothing has an empty result', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  for (const lines of [
    ['ctx.create_cell("x = 2")'],
    ['ctx.create_cell("y = 2")', 'raise ValueError(1)'],
    ['pass'],
  ]) {
    const { revision, ...result } = await resultOf(notebook, ...lines);
    assert.deepEqual([revision, result], [0, NOTHING], lines.join());
  }
  await notebook.close();
});

test('the revision counts the commits of the session across blocks and calls', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const revisions: number[] = [];
  for (const line of [
    'ctx.create_cell("b = 1")',
    'ctx.set_app_options(width="full")',
    'ctx.move_cell("a", after=ctx.cells[-1].id)',
  ]) {
    revisions.push((await resultOf(notebook, line)).revision);
  }
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 2' }] });
  revisions.push((await resultOf(notebook, 'ctx.create_cell("c = 1")')).revision);
  assert.deepEqual(revisions, [1, 2, 3, 5]);
  const two = await callCode(
    client,
    notebook.id,
    `${block('ctx.create_cell("d = 1")')}first = ctx.result.revision\n${block('ctx.create_cell("e = 1")')}print(first, ctx.result["revision"])`,
  );
  assert.match(two.stdout, /6 7\n$/);
  await notebook.close();
});

test('the result of a block can be inspected in the same call or a later call', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const before = await callCode(
    client,
    notebook.id,
    'import marimo._code_mode as cm\nprint(cm.get_context().result)',
  );
  assert.equal(before.stdout, 'None\n');
  await callCode(client, notebook.id, block('ctx.run_cell("a")'));
  const later = await callCode(
    client,
    notebook.id,
    'import marimo._code_mode as cm\nr = cm.get_context().result\nprint(r.run, r["errors"])\nr.no_such_member',
  );
  assert.deepEqual([later.stdout, later.errors[0]?.type], ["['a'] []\n", 'AttributeError']);
  await notebook.close();
});

test('a cell that depends on a stopped cell is not reported as an error', async () => {
  const notebook = await openNotebook(server, { a: 'import marimo as mo\nmo.stop(True)\nx = 1', b: 'y = x' });
  const { run, errors } = await resultOf(notebook, 'ctx.run_cell("b")');
  assert.deepEqual([run, errors], [['a'], []]);
  await notebook.close();
});
