import assert from 'node:assert/strict';
import test from 'node:test';
import { applyTransaction } from '#src/notebook/open/document-changes.ts';
import { charsOfValue, MAX_HELD_CHARS } from '#src/notebook/open/held-chars.ts';
import { NotebookView, type ViewCell } from '#src/notebook/open/view.ts';
import { CountedList } from './counted-list.ts';
import { cellOp, done, output, stderr, stdout, verdict } from './kernel-messages.ts';

const MIB = 2 ** 20;
const config = { disabled: false, hideCode: false, expandOutput: false, column: null };
const create = (cellId: string, code: string) =>
  ({ type: 'create-cell', cellId, code, name: '_', config, before: null, after: null }) as const;

test('a kernel makes at most ten thousand cells', () => {
  const view = new NotebookView([]);
  applyTransaction(
    view,
    Array.from({ length: 10_010 }, (_, n) => create(`c${n}`, '')),
  );
  assert.equal(view.cells.length, 10_000);
  view.remove('c0');
  applyTransaction(view, [create('another', '')]);
  assert.ok(view.get('another'));
});

test('a kernel can add at most 16 MiB of code, and only names of a readable length', () => {
  const view = new NotebookView([{ cell_id: 'a', code: '1', options: {} }]);
  const large = 'x'.repeat(10 * MIB);
  applyTransaction(view, [
    create('b', large),
    create('c', large),
    { type: 'set-code', cellId: 'a', code: large },
  ]);
  assert.deepEqual(
    [view.get('b')?.code.length, view.get('c'), view.get('a')?.code],
    [10 * MIB, undefined, '1'],
  );
  applyTransaction(view, [
    { type: 'set-code', cellId: 'b', code: '2' },
    { type: 'set-code', cellId: 'a', code: large },
    { type: 'set-name', cellId: 'a', name: large },
  ]);
  assert.deepEqual([view.get('a')?.code.length, view.get('a')?.options], [10 * MIB, {}]);
});

test('outputs of a notebook are kept up to 256 MiB, and a note replaces a dropped output', () => {
  const ids = Array.from({ length: 6 }, (_, n) => `c${n}`);
  const view = new NotebookView(ids.map((cell_id) => ({ cell_id, code: '', options: {} })));
  const large = 'x'.repeat(50 * MIB);
  for (const id of ids) view.applyCellOp(cellOp(id, { output: output('text/plain', large) }));
  const kept = ids.map((id) => view.get(id)?.output?.data === large);
  assert.deepEqual(kept, [true, true, true, true, true, false]);
  assert.match(String(view.get('c5')?.output?.data), /^This output was not kept: .* 256 MiB\.$/);
  view.applyCellOp(cellOp('c0', { output: output('text/plain', '') }));
  view.applyCellOp(cellOp('c5', { output: output('text/plain', large) }));
  assert.equal(view.get('c5')?.output?.data, large);
});

/**
 * Returns a notebook of the cells a and b. The output of the first cell is so large that there is
 * room for only this much more.
 */
function viewWithRoom(chars: number): NotebookView {
  const view = new NotebookView(['a', 'b'].map((cell_id) => ({ cell_id, code: '', options: {} })));
  view.applyCellOp(cellOp('a', { output: output('text/plain', 'x'.repeat(MAX_HELD_CHARS - chars)) }));
  return view;
}

test('the text and table of an output and the objects in it count towards its size', () => {
  const data = { list: [[], []] };
  const table = { columns: [{ name: 'n', type: 't' }], rows: [[1]], rowCount: 1, columnCount: 1 };
  const shown = { ...output('application/json', data), text: 'x', table };
  const chars = JSON.stringify(data).length + 4 * 40 + 1 + JSON.stringify(table).length + 5 * 40;
  for (const [room, isKept] of [
    [chars, true],
    [chars - 1, false],
  ] as const) {
    const cell = viewWithRoom(room).applyCellOp(cellOp('b', { output: shown }));
    assert.equal(cell?.output === shown, isKept);
  }
});

test('brackets and quotes in a text count as one character each, and no JSON of the text is made', (t) => {
  const stringify = t.mock.method(JSON, 'stringify');
  const value = { text: '[{"'.repeat(1000), list: [1, null, true] };
  assert.equal(charsOfValue(value), '{"text":"","list":[1,null,true]}'.length + 3000 + 2 * 40);
  assert.equal(stringify.mock.callCount(), 0);
});

test("structural errors count towards the size of a notebook's outputs, until they are replaced", () => {
  const errors = [{ type: 'cycle', msg: 'x'.repeat(MIB) }];
  const chars = charsOfValue(errors);
  const full = viewWithRoom(chars - 1);
  full.applyVerdicts(done({ b: verdict('marimo-error', false, errors) }));
  assert.match(String(full.get('b')?.structural[0]?.msg), /^Its errors were not kept: .* 256 MiB\.$/);
  const view = viewWithRoom(chars);
  for (let count = 0; count < 3; count++) {
    view.applyVerdicts(done({ b: verdict('marimo-error', false, errors) }));
    assert.equal(view.get('b')?.structural, errors);
  }
  view.setCode(view.get('b')!, 'x');
  const shown = view.applyCellOp(cellOp('b', { output: output('text/plain', 'x'.repeat(chars)) }));
  assert.equal(String(shown?.output?.data).length, chars);
});

test('variables beyond the limit of a view are not kept', () => {
  const variables = [{ name: 'x'.repeat(1000), declaredBy: ['a'], usedBy: ['b', 'b'] }];
  const chars = 100 + 1000 + 3 * (20 + 1);
  for (const [room, known] of [
    [chars, variables],
    [chars - 1, []],
  ] as const) {
    const view = viewWithRoom(room);
    for (let count = 0; count < 3; count++) view.setVariables(variables);
    assert.deepEqual(view.variables, known);
  }
});

test("printed text counts towards the size of a notebook's outputs, with 256 additional characters per entry", () => {
  const three = cellOp('b', { console: [stdout('1'), stderr('2'), stdout('3')] });
  const printed = ({ console }: ViewCell) => [console.entries().length, console.omitted];
  const full = viewWithRoom(3 * 257 - 1);
  assert.deepEqual(printed(full.applyCellOp(three)!), [2, 1]);
  const view = viewWithRoom(3 * 257);
  assert.deepEqual(printed(view.applyCellOp(three)!), [3, 0]);
  assert.deepEqual(printed(view.applyCellOp(cellOp('b', { console: [stdout('4')] }))!), [3, 1]);
  view.applyCellOp(cellOp('b', { console: [] }));
  assert.deepEqual(printed(view.applyCellOp(three)!), [3, 0]);
  view.remove('b');
  view.add('b', '', {});
  assert.deepEqual(printed(view.applyCellOp(three)!), [3, 0]);
});

test('the time to find the ancestors of cells grows with the names that a kernel sends, not with their product', () => {
  const count = 500;
  const ids = Array.from({ length: count }, (_, n) => `c${n}`);
  const view = new NotebookView(ids.map((cell_id) => ({ cell_id, code: '', options: {} })));
  const declaredBy = CountedList.from([...ids, ...ids.map((id) => `gone ${id}`)]) as CountedList;
  const usedBy = CountedList.from([...ids, ...ids.map((id) => `gone ${id}`)]) as CountedList;
  view.setVariables([{ name: 'x', declaredBy, usedBy }]);
  declaredBy.reads = 0;
  usedBy.reads = 0;
  assert.equal(view.ancestors(['c0']).size, count);
  assert.deepEqual([declaredBy.reads, usedBy.reads], [2 * count, 2 * count]);
});
