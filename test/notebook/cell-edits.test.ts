/** Planning the changes of one request takes time in proportion to their number. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellChange } from '#src/contract/wire/cell-changes.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { planCellEdits } from '#src/notebook/requests/cell-edits.ts';
import { assertLinear } from '#test/support/growth.ts';

const CELLS = 8000;
const idsOf = (count: number) => Array.from({ length: count }, (_, at) => `c${at}`);

test('the time to plan a row of new cells, each put after the previous cell, grows with the length of the row', () => {
  const view = new NotebookView([]);
  assertLinear('create-cell', CELLS, (count) => {
    const create = (id: string, at: number): CellChange => ({
      type: 'create-cell',
      cellId: id,
      code: '1',
      ...(at === 0 ? {} : { after: `c${at - 1}` }),
    });
    return planCellEdits(view, idsOf(count).map(create));
  });
});

test('the time to plan a row of moved cells, each moved after the previous cell, grows with the length of the row', () => {
  const view = new NotebookView(idsOf(CELLS).map((id) => ({ cell_id: id, code: '1', options: {} })));
  assertLinear('move-cell', CELLS, (count) => {
    const [first, ...others] = idsOf(count);
    const move = (id: string, at: number): CellChange => ({
      type: 'move-cell',
      cellId: id,
      after: at === 0 ? first! : `c${at}`,
    });
    return planCellEdits(view, others.map(move));
  });
});

test('the time to compare a new name with other names grows with the number of cells', () => {
  assertLinear('set-name', 2 * CELLS, (count) => {
    const view = new NotebookView(idsOf(count).map((id) => ({ cell_id: id, code: '', options: {} })));
    planCellEdits(view, [{ type: 'set-name', cellId: 'c0', name: 'first' }]);
  });
});

test('a cell cannot be its own neighbour through five thousand other cells, and a request checks this in at most a million steps', () => {
  const view = new NotebookView(idsOf(CELLS).map((id) => ({ cell_id: id, code: '', options: {} })));
  const move = (cellId: string, after: string): CellChange => ({ type: 'move-cell', cellId, after });
  const row = idsOf(5000).map((id, at) => move(`c${at + 1}`, id));
  assert.throws(
    () => planCellEdits(view, [...row, move('c0', 'c5000')]),
    /next to one that was put next to it/,
  );
  planCellEdits(view, [...row, move('c0', 'c7000')]);
  const again = Array.from({ length: 300 }, () => move('c7000', 'c5000'));
  assert.throws(
    () => planCellEdits(view, [...row, move('c7001', 'c7000'), ...again]),
    /too often for one request/,
  );
});

test('a refusal shows only as many characters of an unknown id as an id may have, because a request may have megabytes', () => {
  const view = new NotebookView([{ cell_id: 'a', code: '1', options: {} }]);
  for (const place of ['before', 'after'])
    assert.throws(
      () => planCellEdits(view, [{ type: 'move-cell', cellId: 'a', [place]: 'x'.repeat(1_000_000) }]),
      ({ code, message }: { code: string; message: string }) =>
        code === 'unknown_cell' && message.includes('x'.repeat(128)) && message.length < 250,
    );
});
