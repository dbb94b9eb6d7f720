/** What it costs to plan changes of cells that a client sends together. */
import test from 'node:test';
import { planCellEdits } from '#src/notebook/cell-edits.ts';
import { NotebookView } from '#src/notebook/view.ts';
import type { CellChange } from '#src/wire/cell-changes.ts';
import { assertLinear } from '#test/support/growth.ts';

const CELLS = 8000;
const idsOf = (count: number) => Array.from({ length: count }, (_, at) => `c${at}`);

test('a row of new cells, each put after the last one, is planned in a time that grows with its length', () => {
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

test('a row of cells, each moved after the last one, is planned in a time that grows with its length', () => {
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
