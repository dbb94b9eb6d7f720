import assert from 'node:assert/strict';
import test from 'node:test';
import { applyTransaction } from '#src/notebook/document-changes.ts';
import { NotebookView } from '#src/notebook/view.ts';
import { cellOp, output } from './kernel-messages.ts';

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

test('a kernel writes at most 16 MiB of code, and names that a person could read', () => {
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

test('outputs of a notebook are kept up to 256 MiB, and one that is not says so', () => {
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
