import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellError } from '#src/confined/processes/kernel/messages.ts';
import type { VariableGraph } from '#src/notebook/open/dependencies.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { brokenOutputs } from '#src/notebook/work/broken-cells.ts';
import { CountedList } from '../counted-list.ts';
import { done, verdict } from '../kernel-messages.ts';

const CYCLE: CellError = { type: 'cycle' };

/** A notebook of these cells, whose kernel has these variables and cannot run the cells that are `broken`. */
function viewOf(ids: readonly string[], variables: VariableGraph, broken: readonly string[]): NotebookView {
  const view = new NotebookView(ids.map((cell_id) => ({ cell_id, code: '', options: {} })));
  view.setVariables(variables);
  view.applyVerdicts(done(Object.fromEntries(broken.map((id) => [id, verdict(null, true, [CYCLE])]))));
  return view;
}

const variable = (owner: string, ...usedBy: string[]) => ({
  name: `of_${owner}`,
  declaredBy: [owner],
  usedBy,
});

test('the reason of a cell that needs several broken cells names the first of these cells in the notebook', () => {
  const variables = [variable('b', 'd'), variable('a', 'c'), variable('c', 'd'), variable('d', 'gone')];
  const view = viewOf(['a', 'b', 'c', 'd', 'e'], variables, ['b', 'a']);
  const outputOf = brokenOutputs(view);
  const text = (id: string) => outputOf(view.get(id)!)?.text;
  assert.match(text('a') ?? '', /cycle/);
  assert.match(text('c') ?? '', /^This needs the cell a, which cannot run: .*cycle/);
  assert.match(text('d') ?? '', /^This needs the cell a, /);
  assert.equal(text('e'), undefined);
});

test('the dependants of broken cells are searched once, even if many cells depend on each other', () => {
  const count = 1000;
  const ids = Array.from({ length: count }, (_, n) => `c${n}`);
  const uses = ids.map((_, n) => CountedList.from(ids.slice(n + 1, n + 3)) as CountedList);
  const variables = ids.map((id, n) => ({ name: id, declaredBy: [id], usedBy: uses[n]! }));
  const view = viewOf(ids, variables, ids.slice(0, 10));
  for (const list of uses) list.reads = 0;
  const outputOf = brokenOutputs(view);
  assert.ok(view.cells.every((cell) => outputOf(cell) !== undefined));
  assert.equal(
    uses.reduce((sum, { reads }) => sum + reads, 0),
    uses.reduce((sum, { length }) => sum + length, 0),
  );
});
