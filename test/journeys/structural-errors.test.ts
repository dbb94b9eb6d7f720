/** Notebooks in which several cells define a name, or cells depend on each other in a cycle. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, results, statuses } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

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

test('with structuralErrors skip the cells that can run do, and the others say why they cannot', async () => {
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

test('a request that does not ask for it is refused as before, with the reasons', async () => {
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

test('new code that brings a double definition is run with skip, and cells that do not need it succeed', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2', c: 'z = 3' });
  const cells = [{ cellId: 'b', code: 'x = 2' }, { cellId: 'c' }];
  const run = await notebook.run({ type: 'cells', cells, structuralErrors: 'skip' });
  assert.deepEqual(statuses(run), { b: 'error', c: 'success' });
  assert.equal(text(run, 'b'), 'x is also defined in a');
});
