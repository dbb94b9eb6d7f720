/** Cells that cannot run: several define one name, they depend on each other in a cycle, or their code does not compile. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, results, statuses } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { executions, notebooks } = server.client;

const CELLS = {
  first: 'x = 1',
  second: 'x = 2',
  needs: 'y = x',
  indirectly: 'y + 1',
  fine: '1 + 1',
  p: 'm = n',
  q: 'n = m',
  broken: 'z = = 1',
};
const OPTIONS = { first: { name: 'one' }, second: { name: 'two' } };
const text = (run: Parameters<typeof results>[0], cellId: string) =>
  results(run).find((result) => result.cellId === cellId)?.outputs[0]?.text;

test('with structuralErrors skip, all cells that can run are run, and the output of every other cell is the reason', async () => {
  const notebook = await openNotebook(server, CELLS, { options: OPTIONS });
  const run = await notebook.run({ type: 'all', structuralErrors: 'skip' });
  assert.deepEqual(statuses(run), {
    ...Object.fromEntries(Object.keys(CELLS).map((id) => [id, 'error'])),
    fine: 'success',
  });
  assert.deepEqual(
    ['first', 'second', 'needs', 'indirectly', 'p'].map((id) => text(run, id)),
    [
      'x is also defined in two',
      'x is also defined in one',
      'This needs the cell one, which cannot run: x is also defined in two',
      'This needs the cell one, which cannot run: x is also defined in two',
      'the cells depend on each other in a cycle (p → q by m; q → p by n)',
    ],
  );
  assert.match(text(run, 'broken') ?? '', /invalid syntax/);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'cell_failed']);
});

test('a request without structuralErrors is refused, with the reasons', async () => {
  const notebook = await openNotebook(server, CELLS);
  for (const structuralErrors of [undefined, 'refuse'] as const) {
    const error = await problemOf(
      notebook.submit({ type: 'all', ...(structuralErrors === undefined ? {} : { structuralErrors }) }),
    );
    assert.equal(error.code, 'structural_error');
    assert.match(
      error.detail,
      /first \(x is also defined in second\), second \(x is also defined in first\)/,
    );
  }
});

test('with structuralErrors skip, new code with a double definition runs, and cells that do not need the defined name succeed', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2', c: 'z = 3' });
  const cells = [{ cellId: 'b', code: 'x = 2' }, { cellId: 'c' }];
  const run = await notebook.run({ type: 'cells', cells, structuralErrors: 'skip' });
  assert.deepEqual(statuses(run), { b: 'error', c: 'success' });
  assert.equal(text(run, 'b'), 'x is also defined in a');
});

test('two cells that define the same name are refused until one of the two cells is corrected', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x = 2', c: 'x + 1', d: 'y = 1' });
  const twice = [
    { cellId: 'a', errors: [{ type: 'multiple-defs', message: 'x is also defined in b' }] },
    { cellId: 'b', errors: [{ type: 'multiple-defs', message: 'x is also defined in a' }] },
  ];
  for (const request of [['a'], ['c'], []]) {
    const { status, code, body } = await problemOf(notebook.submit(request));
    assert.deepEqual([status, code], [409, 'structural_error'], request.join());
    const expected = request[0] === 'a' ? twice.slice(0, 1) : twice;
    assert.deepEqual((body as { cells: unknown }).cells, expected, request.join());
  }
  assert.deepEqual((await notebook.record()).cells[0]?.status, 'error');
  assert.equal((await notebook.run(['d'])).status, 'completed');
  assert.equal((await executions.list(notebook.id)).items.length, 1, 'a refused request leaves no run');
  const corrected = await notebook.run({ type: 'cells', cells: [{ cellId: 'b', code: 'z = 2' }] });
  assert.equal(corrected.status, 'completed');
  assert.deepEqual(statuses(await notebook.run(['c'])), { a: 'success', c: 'success' });
  await notebook.close();
});

test('cells that depend on each other in a cycle are refused until one of these cells is corrected', async () => {
  const notebook = await openNotebook(server, { a: 'x = y', b: 'y = x', c: 'z = 1' });
  const message = 'the cells depend on each other in a cycle (a → b by x; b → a by y)';
  const { code, body } = await problemOf(notebook.submit(['a']));
  assert.equal(code, 'structural_error');
  assert.deepEqual((body as { cells: unknown }).cells, [
    { cellId: 'a', errors: [{ type: 'cycle', message }] },
    { cellId: 'b', errors: [{ type: 'cycle', message }] },
  ]);
  const corrected = await notebook.run({ type: 'cells', cells: [{ cellId: 'b', code: 'y = 1' }] });
  assert.equal(corrected.status, 'completed');
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await notebook.close();
});

test('code that would cause a structural error is refused and not saved', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2' });
  const bad = { type: 'cells', cells: [{ cellId: 'b', code: 'x = 2' }] } as const;
  assert.equal(await refusalOf(notebook.submit(bad)), '409 structural_error');
  assert.deepEqual(await notebooks.get(notebook.id), notebook.notebook);
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('a cell that does not parse fails its run at that cell', async () => {
  const notebook = await openNotebook(server, { a: 'x = = 1', b: 'y = 1' });
  assert.equal(notebook.notebook.serialization.valid, false);
  const run = await notebook.run(['a']);
  assert.deepEqual([run.status, run.error?.code, run.error?.cells], ['failed', 'cell_failed', ['a']]);
  assert.deepEqual(statuses(run), { a: 'error' });
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('new code that does not compile fails the run at its cell, for every kind of compiler error', async () => {
  const notebook = await openNotebook(server, { a: '1', b: 'y = 1' });
  const reasons = {
    'from math import *': 'import-star: ',
    'x = "\0"': 'syntax: line 1\nSyntaxError: source code string cannot contain null bytes',
    [`${'-'.repeat(5_000)}1`]: 'syntax: line 1\nSyntaxError: the code is nested too deeply',
  };
  for (const [code, reason] of Object.entries(reasons)) {
    for (const cell of [{ cellId: 'a', code }, { cellId: 'a' }]) {
      const run = await notebook.run({ type: 'cells', cells: [cell] });
      assert.deepEqual(
        [run.status, run.error?.code, statuses(run)],
        ['failed', 'cell_failed', { a: 'error' }],
      );
      assert.equal(run.error?.message.slice(0, reason.length), reason);
    }
  }
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('a refusal of new code names the cells of a cycle in the order of the notebook', async () => {
  const ids = ['f', 'b', 'e', 'a', 'd', 'c'];
  const notebook = await openNotebook(server, Object.fromEntries(ids.map((id) => [id, `of_${id} = 1`])));
  const cells = ids.map((cellId, at) => ({
    cellId,
    code: `of_${cellId} = of_${ids[(at + 1) % ids.length]}`,
  }));
  const { code, body } = await problemOf(notebook.submit({ type: 'cells', cells: cells.reverse() }));
  assert.equal(code, 'structural_error');
  const named = (body as { cells: readonly { cellId: string }[] }).cells;
  assert.deepEqual(
    named.map(({ cellId }) => cellId),
    ids,
  );
  await notebook.close();
});
