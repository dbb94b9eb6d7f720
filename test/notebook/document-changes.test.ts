import assert from 'node:assert/strict';
import test from 'node:test';
import type { DocumentChange } from '#src/confined/processes/kernel/messages.ts';
import { applyTransaction } from '#src/notebook/open/document-changes.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { SeededRandom } from '#test/support/random.ts';

test('a new cell comes before or after its anchor, or last', () => {
  const places: [{ before?: string; after?: string }, string][] = [
    [{ before: 'b' }, 'a n b c'],
    [{ after: 'b' }, 'a b n c'],
    [{ before: 'a' }, 'n a b c'],
    [{ after: 'c' }, 'a b c n'],
    [{}, 'a b c n'],
    [{ before: 'gone' }, 'a b c n'],
    [{ before: 'a', after: 'c' }, 'n a b c'],
  ];
  for (const [place, order] of places) {
    const { view, changed } = apply(create('n', place));
    assert.deepEqual([orderOf(view), changed], [order, { registered: ['n'], deleted: [], reordered: true }]);
  }
});

test('a new cell has its code, its name and the settings that are not defaults', () => {
  const { view } = apply({
    ...create('n'),
    code: 'x = 1',
    name: 'load',
    config: { hideCode: true, disabled: false },
  });
  const { code, options, codeVersion, stale } = view.get('n')!;
  assert.deepEqual(
    [code, options, codeVersion, stale],
    ['x = 1', { hide_code: true, name: 'load' }, 0, true],
  );
});

test('an existing cell is not created again', () => {
  const { view, changed } = apply({ ...create('b', { before: 'a' }), code: 'other' });
  assert.deepEqual([view.get('b')?.code, orderOf(view), changed], ['code of b', 'a b c', NOTHING]);
});

test('a cell with an id that clients could not use is not created', () => {
  for (const id of ['', '__scratch__', 'a\nb', 'x'.repeat(5_000)]) {
    const { view, changed } = apply(create(id));
    assert.deepEqual([orderOf(view), changed], ['a b c', NOTHING]);
  }
});

test('a deleted cell is not in the document', () => {
  const { view, changed } = apply({ type: 'delete-cell', cellId: 'b' });
  assert.deepEqual([orderOf(view), changed], ['a c', { registered: [], deleted: ['b'], reordered: true }]);
});

test('a cell is moved before or after another', () => {
  const moves: [string, { before: string | null; after: string | null }, string][] = [
    ['c', { before: 'a', after: null }, 'c a b'],
    ['a', { before: null, after: 'c' }, 'b c a'],
    ['a', { before: null, after: 'b' }, 'b a c'],
    ['a', { before: 'c', after: null }, 'b a c'],
    ['b', { before: 'c', after: null }, 'a b c'],
    ['b', { before: null, after: null }, 'a b c'],
    ['b', { before: 'b', after: null }, 'a b c'],
    ['b', { before: 'gone', after: null }, 'a b c'],
  ];
  for (const [cellId, place, order] of moves) {
    const { view, changed } = apply({ type: 'move-cell', cellId, ...place });
    assert.deepEqual([orderOf(view), changed], [order, { ...NOTHING, reordered: order !== 'a b c' }]);
  }
});

test('a new or moved cell whose anchor is missing is reported with its actual place, so that all copies agree', () => {
  const { changes } = applyTransaction(viewOf(), [
    create('n', { before: 'gone' }),
    { type: 'move-cell', cellId: 'a', before: 'gone', after: null },
    { type: 'move-cell', cellId: 'c', before: 'a', after: null },
  ]);
  const places = changes.map((change) => 'after' in change && [change.cellId, change.before, change.after]);
  assert.deepEqual(places, [
    ['n', null, 'c'],
    ['a', 'b', null],
    ['c', 'a', null],
  ]);
});

test('cells get the order in which they are named; unknown cells are ignored, and unnamed cells follow', () => {
  const orders: [string[], string][] = [
    [['c', 'b', 'a'], 'c b a'],
    [['c'], 'c a b'],
    [['gone', 'b', 'b'], 'b a c'],
    [[], 'a b c'],
  ];
  for (const [cellIds, order] of orders) {
    const { view, changed } = apply({ type: 'reorder-cells', cellIds });
    assert.deepEqual([orderOf(view), changed], [order, { ...NOTHING, reordered: order !== 'a b c' }]);
  }
});

test('changes of code, name and settings of a cell register it once', () => {
  const { view, changed } = apply(
    { type: 'set-code', cellId: 'b', code: 'x = 2' },
    { type: 'set-name', cellId: 'b', name: 'load' },
    { type: 'set-config', cellId: 'b', config: { hideCode: true } },
    { type: 'set-config', cellId: 'a', config: { column: 1 } },
  );
  const { code, options, version, stale } = view.get('b')!;
  assert.deepEqual([code, options, version, stale], ['x = 2', { name: 'load', hide_code: true }, 1, true]);
  assert.deepEqual(view.get('a')?.options, { column: 1 });
  assert.deepEqual(changed, { registered: ['b', 'a'], deleted: [], reordered: false });
});

test('changes of missing cells are ignored', () => {
  const { view, changed } = apply(
    { type: 'delete-cell', cellId: 'gone' },
    { type: 'move-cell', cellId: 'gone', before: 'a', after: null },
    { type: 'set-code', cellId: 'gone', code: 'x' },
    { type: 'set-name', cellId: 'gone', name: 'x' },
    { type: 'set-config', cellId: 'gone', config: { disabled: true } },
  );
  assert.deepEqual([orderOf(view), changed], ['a b c', NOTHING]);
});

test('the changes of one transaction build on each other', () => {
  const { view, changed } = apply(
    create('n', { after: 'a' }),
    create('m', { before: 'n' }),
    { type: 'set-code', cellId: 'n', code: 'x = 3' },
    { type: 'delete-cell', cellId: 'm' },
    { type: 'delete-cell', cellId: 'c' },
    { ...create('c'), code: 'again' },
  );
  assert.deepEqual([orderOf(view), view.get('n')?.code, view.get('c')?.code], ['a n b c', 'x = 3', 'again']);
  assert.deepEqual(changed, { registered: ['n', 'c'], deleted: ['m', 'c'], reordered: true });
});

test('a transaction with many moves orders the notebook once, and a transaction without moves does not order it', (t) => {
  const ids = Array.from({ length: 100 }, (_, n) => `c${n}`);
  const view = new NotebookView(ids.map((id) => ({ cell_id: id, code: '', options: {} })));
  const reorder = t.mock.method(view, 'reorder');
  const moves = ids.map(
    (cellId): DocumentChange => ({ type: 'move-cell', cellId, before: 'c50', after: null }),
  );
  const orders = ids.map((id): DocumentChange => ({ type: 'reorder-cells', cellIds: [id] }));
  assert.equal(applyTransaction(view, [...moves, ...orders]).reordered, true);
  assert.deepEqual(
    view.cells.map(({ id }) => id),
    ids.toReversed(),
  );
  assert.equal(reorder.mock.callCount(), 1);
  applyTransaction(view, [{ type: 'set-name', cellId: 'c1', name: 'load' }]);
  assert.equal(reorder.mock.callCount(), 1);
});

test('several moves have the same result in one transaction as one by one', () => {
  const random = new SeededRandom(4);
  const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'gone'];
  const some = () => Array.from({ length: random.below(5) }, () => random.pick(ids));
  const makers: readonly (() => DocumentChange)[] = [
    () => ({ type: 'move-cell', cellId: random.pick(ids), before: random.pick(ids), after: null }),
    () => ({ type: 'move-cell', cellId: random.pick(ids), before: null, after: random.pick(ids) }),
    () => ({ type: 'reorder-cells', cellIds: some() }),
    () => ({ type: 'delete-cell', cellId: random.pick(ids) }),
    () => create(random.pick(ids), random.is(0.5) ? { before: random.pick(ids) } : {}),
  ];
  for (let count = 0; count < 1000; count++) {
    const changes = Array.from({ length: 8 }, () => random.pick(makers)());
    const together = apply(...changes);
    const { view } = apply();
    for (const change of changes) applyTransaction(view, [change]);
    assert.equal(orderOf(together.view), orderOf(view), JSON.stringify(changes));
    assert.equal(together.changed.reordered, orderOf(view) !== 'a b c', JSON.stringify(changes));
  }
});

const NOTHING = { registered: [], deleted: [], reordered: false };

function create(cellId: string, place: { before?: string; after?: string } = {}) {
  return {
    type: 'create-cell',
    cellId,
    code: '',
    name: '',
    config: {},
    before: null,
    after: null,
    ...place,
  } as const;
}

/** Applies changes to a notebook of the cells a, b and c. */
function viewOf(): NotebookView {
  return new NotebookView(['a', 'b', 'c'].map((id) => ({ cell_id: id, code: `code of ${id}`, options: {} })));
}

function apply(...changes: readonly DocumentChange[]) {
  const view = viewOf();
  const { registered, deleted, reordered } = applyTransaction(view, changes);
  return { view, changed: { registered: registered.map(({ id }) => id), deleted, reordered } };
}

function orderOf(view: NotebookView): string {
  return view.cells.map(({ id }) => id).join(' ');
}
