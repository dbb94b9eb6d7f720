import assert from 'node:assert/strict';
import test from 'node:test';
import { PendingEdits } from '#src/notebook/open/pending-edits.ts';

const create = (cellId: string, code: string) =>
  ({ type: 'create-cell', cellId, code, name: '', config: {}, before: null, after: null }) as const;

test('later edits of a cell replace its earlier edits, and each edit is taken once', () => {
  const edits = new PendingEdits();
  edits.add([create('a', '1'), { type: 'set-code', cellId: 'a', code: '2' }]);
  edits.add([{ type: 'set-code', cellId: 'b', code: '3' }]);
  assert.deepEqual(edits.take(), { codes: { a: '2', b: '3' }, configs: { a: {} }, deleteIds: [] });
  assert.equal(edits.take(), undefined);
});

test('pending edits have no code and no settings of a deleted cell until the cell is created again', () => {
  const edits = new PendingEdits();
  edits.add([
    { type: 'set-code', cellId: 'a', code: '2' },
    { type: 'delete-cell', cellId: 'a' },
  ]);
  assert.deepEqual(edits.take(), { codes: {}, configs: {}, deleteIds: ['a'] });
  edits.add([{ type: 'delete-cell', cellId: 'a' }, create('a', '4')]);
  assert.deepEqual(edits.take(), { codes: { a: '4' }, configs: { a: {} }, deleteIds: [] });
});

test('a cell that is created and deleted before the kernel knows it leaves nothing', () => {
  const edits = new PendingEdits();
  for (let number = 0; number < 1000; number++)
    edits.add([create(`c${number}`, '1'), { type: 'delete-cell', cellId: `c${number}` }]);
  assert.equal(edits.take(), undefined);
});

test('names and the order of cells are not sent to a kernel as edits', () => {
  const edits = new PendingEdits();
  edits.add([
    { type: 'set-name', cellId: 'a', name: 'b' },
    { type: 'move-cell', cellId: 'a', before: null, after: 'b' },
    { type: 'reorder-cells', cellIds: ['a'] },
  ]);
  assert.equal(edits.take(), undefined);
});

test('changes by the kernel replace earlier edits of the same cell, and never bring back a cell that the kernel has deleted', () => {
  const edits = new PendingEdits();
  edits.add([
    ...['a', 'b', 'c'].map((cellId) => ({ type: 'set-code', cellId, code: 'edited' }) as const),
    { type: 'set-config', cellId: 'a', config: { disabled: true } },
    { type: 'delete-cell', cellId: 'd' },
  ]);
  const merged = { disabled: true, hideCode: true };
  edits.overtakenBy(
    [
      { type: 'set-code', cellId: 'a', code: 'of the kernel' },
      { type: 'set-config', cellId: 'a', config: { hideCode: true } },
      { type: 'set-config', cellId: 'c', config: { hideCode: true } },
      { type: 'delete-cell', cellId: 'b' },
    ],
    () => merged,
  );
  assert.deepEqual(edits.take(), { codes: { c: 'edited' }, configs: { a: merged }, deleteIds: ['d'] });
});
