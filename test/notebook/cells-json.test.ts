/** The JSON of cells, which is made before a notebook is saved with them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import { jsonOfCells, MAX_BLOCK_CELLS, preparingCells, savedAgain } from '#src/notebook/saved/cells-json.ts';

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

test('a cell that is saved with its prepared code uses the prepared JSON', () => {
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

test('the JSON of unchanged neighbours is used again when cells at any place are changed, added, removed or moved', () => {
  let cells = Array.from({ length: 2000 }, (_, at) => cell(`cell-${at}`, `x = ${at}`));
  const long = cell('long', 'ä'.repeat(100_000));
  let before = atOnce(jsonOfCells(cells)).pieces;
  const change = (name: string, changed: typeof cells, newCells: number) => {
    cells = changed;
    assert.equal(stepsFor(cells), newCells, `${name}: the others have their JSON`);
    const { pieces } = atOnce(jsonOfCells(cells));
    assert.equal(Buffer.concat(pieces).toString(), JSON.stringify(cells), name);
    const made = pieces.filter((piece) => !before.includes(piece));
    const madeBytes = made.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (!cells.includes(long)) assert.ok(madeBytes < 3 * MAX_BLOCK_CELLS * 60, `${name}: ${madeBytes} bytes`);
    before = pieces;
  };
  change('a changed cell', cells.with(700, cell('cell-700', 'x = "new"')), 1);
  for (let at = 0; at < 300; at++)
    change('an added cell', cells.toSpliced(700, 0, cell(`new-${at}`, '1')), 1);
  assert.ok(before.length < (3 * cells.length) / MAX_BLOCK_CELLS + 20, `${before.length} pieces`);
  for (let at = 0; at < 300; at++) change('a removed cell', cells.toSpliced(699, 1), 0);
  change('a moved cell', [cells.at(-1)!, ...cells.slice(0, -1)], 0);
  change('the first cell of a piece at another place', [...cells.slice(1), cells[0]!], 0);
  const steps = jsonOfCells(cells.toSpliced(300, 0, long));
  atOnce(steps);
  change('a cell with long code', cells.toSpliced(300, 0, long), 0);
  change('no cells', [], 0);
});
