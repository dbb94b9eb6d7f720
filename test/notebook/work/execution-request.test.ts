import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import type { CellError } from '#src/confined/processes/kernel/messages.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { executionOf, refuseStructuralErrors, requestedCells } from '#src/notebook/work/execution-request.ts';

test('a request counts as an edit if it brings code or settings, even empty code or settings', () => {
  assert.deepEqual(
    [
      executionOf({ type: 'all' }).edits,
      executionOf({ type: 'cells', cells: [{ cellId: 'a' }] }).edits,
      executionOf({ type: 'cells', cells: [{ cellId: 'a' }, { cellId: 'b', code: '' }] }).edits,
      executionOf({ type: 'cells', cells: [{ cellId: 'a', config: {} }] }).edits,
    ],
    [false, false, true, true],
  );
});

test('all cells means all enabled cells, in document order', () => {
  assert.deepEqual(requestedCells({ type: 'all' }, viewOf()), ['b', 'a', 'c']);
});

test('selected cells run in document order, including disabled cells', () => {
  const cells = ['off', 'c', 'b'].map((cellId) => ({ cellId }));
  assert.deepEqual(requestedCells({ type: 'cells', cells }, viewOf()), ['b', 'off', 'c']);
});

test('an empty list, an unknown cell and a repeated cell are refused, each with its place', () => {
  assert.deepEqual(
    [refusalOf([]), refusalOf(['x', 'a', 'y']), refusalOf(['a', 'b', 'a'])],
    [
      ['invalid_request', 400, [{ path: '/cells', message: 'must not be empty' }]],
      [
        'unknown_cell',
        400,
        [
          { path: '/cells/0/cellId', message: 'there is no cell "x"' },
          { path: '/cells/2/cellId', message: 'there is no cell "y"' },
        ],
      ],
      ['duplicate_cell', 400, [{ path: '/cells/2/cellId', message: 'must be unique within the request' }]],
    ],
  );
});

test('structural errors refuse a run and name their cells; a syntax error in a cell is not a structural error', () => {
  const errors: Record<string, CellError[]> = {
    a: [
      { type: 'multiple-defs', name: 'x', cells: ['b', 'c'] },
      { type: 'syntax', msg: 'invalid' },
    ],
    b: [{ type: 'cycle' }],
    c: [{ type: 'syntax', msg: 'invalid' }],
    off: [{ type: 'import-star', msg: 'no stars' }, { type: 'setup-refs' }],
  };
  const refuse = (...ids: string[]) => refuseStructuralErrors(ids, (id) => errors[id] ?? []);
  assert.doesNotThrow(() => refuse('c', 'unknown'));
  assert.throws(
    () => refuse('a', 'b', 'c', 'off'),
    (error) => {
      assert.ok(error instanceof AppError);
      assert.deepEqual(
        [error.code, error.message, error.extras.members],
        [
          'structural_error',
          'These cells must be corrected first: a (x is also defined in b, c), b (the cells depend on each other in a ' +
            'cycle), off (the setup cell depends on other cells).',
          {
            cells: [
              { cellId: 'a', errors: [{ type: 'multiple-defs', message: 'x is also defined in b, c' }] },
              {
                cellId: 'b',
                errors: [{ type: 'cycle', message: 'the cells depend on each other in a cycle' }],
              },
              {
                cellId: 'off',
                errors: [{ type: 'setup-refs', message: 'the setup cell depends on other cells' }],
              },
            ],
          },
        ],
      );
      return true;
    },
  );
});

function viewOf(): NotebookView {
  return new NotebookView(
    ['b', 'a', 'off', 'c'].map((id) => ({
      cell_id: id,
      code: '',
      options: id === 'off' ? { disabled: true } : {},
    })),
  );
}

function refusalOf(ids: readonly string[]): unknown {
  try {
    return requestedCells({ type: 'cells', cells: ids.map((cellId) => ({ cellId })) }, viewOf());
  } catch (error) {
    assert.ok(error instanceof AppError);
    return [error.code, error.status, error.extras.errors];
  }
}

test('the errors of a cell are always named in the same order', () => {
  const cycle = (other: string) => ({ type: 'cycle', edges_with_vars: [['a', ['x'], other]] });
  const found = [{ type: 'multiple-defs', name: 'x', cells: ['b'] }, cycle('c'), cycle('b')];
  const messages = [found, [found[0]!, found[2]!, found[1]!]].map((errors) => {
    try {
      refuseStructuralErrors(['a'], () => errors);
      return undefined;
    } catch (error) {
      assert.ok(error instanceof AppError);
      return error.extras.members;
    }
  });
  assert.ok(messages[0]);
  assert.deepEqual(messages[0], messages[1]);
});
