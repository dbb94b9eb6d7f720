/** The JSON of cells, which is made before a notebook is saved with them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import { jsonOfCells, preparingCells, savedAgain } from '#src/notebook/saved/cells-json.ts';

const cell = (cell_id: string, code: string, options: Readonly<Record<string, unknown>> = {}) => ({
  cell_id,
  code,
  options,
});

/** Counts the steps in which the JSON of cells is made. */
function stepsFor(cells: readonly ReturnType<typeof cell>[]): number {
  const steps = jsonOfCells(cells);
  let count = 0;
  while (steps.next().done !== true) count++;
  return count;
}

test('a cell that is saved with the code for which it was prepared has its JSON', () => {
  const before = cell('a', 'old');
  const ready = [cell('a', 'new', { hide_code: true }), cell('b', '1')];
  {
    using _prepared = atOnce(preparingCells(ready));
    const saved = [
      savedAgain(cell('a', 'new', { hide_code: true }), before),
      savedAgain(cell('b', '1'), undefined),
    ];
    assert.equal(stepsFor(saved), 0);
    assert.deepEqual(saved, ready);
    for (const other of [cell('a', 'other'), cell('a', 'new'), cell('b', 'new', { hide_code: true })])
      assert.equal(savedAgain(other, before), other, 'another code or another setting is not prepared');
    assert.equal(savedAgain(cell('a', 'old'), before), before);
  }
  const late = cell('a', 'new', { hide_code: true });
  assert.equal(savedAgain(late, before), late, 'nothing is kept afterwards');
});

test('the same cell of two notebooks stays prepared until both are saved', () => {
  const [one, other] = [atOnce(preparingCells([cell('a', '1')])), atOnce(preparingCells([cell('a', '2')]))];
  one[Symbol.dispose]();
  one[Symbol.dispose]();
  assert.ok(stepsFor([savedAgain(cell('a', '1'), undefined)]) > 0);
  assert.equal(stepsFor([savedAgain(cell('a', '2'), undefined)]), 0);
  other[Symbol.dispose]();
  assert.ok(stepsFor([savedAgain(cell('a', '2'), undefined)]) > 0);
});

test('the JSON of a short cell is made in one step', () => {
  const cells = Array.from({ length: 1000 }, (_, at) =>
    cell(`cell-${at}`, `x = ${at}`, { name: 'ä', column: null }),
  );
  const json = atOnce(jsonOfCells(cells));
  assert.equal(Buffer.concat(json.pieces).toString(), JSON.stringify(cells));
  assert.equal(stepsFor(cells), 0);
  assert.equal(stepsFor(cells.map((one) => ({ ...one }))), cells.length);
});
