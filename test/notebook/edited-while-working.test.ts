/** A cell that is edited while its kernel works with earlier code, as an open notebook shows it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import { cellOp, done, errorOutput, verdict } from './kernel-messages.ts';
import { openUnsavedNotebook } from './unsaved-notebook.ts';

const SYNTAX = { type: 'syntax', msg: 'invalid syntax' };

test('a cell that is edited during its run stays stale after any report of the kernel about the earlier code', () => {
  const { live, cell } = workingNotebook();
  const edit = { type: 'set-code', cellId: 'a', code: 'edited' } as const;
  live.edit([edit], 'user', null);
  live.apply([cellOp('a', { status: 'running', staleInputs: false })]);
  assert.deepEqual([cell.stale, cell.ran?.code], [true, 'accepted']);
  live.apply([done({ a: verdict('success') })]);
  assert.deepEqual([cell.stale, cell.ended], [true, 'success']);
  live.editsGiven(live.takeEdits()!);
  live.apply([done({ a: verdict('success', true) })]);
  live.apply([cellOp('a', { status: 'running', staleInputs: false }), done({ a: verdict('success') })]);
  assert.deepEqual([cell.stale, cell.ran?.code], [false, 'edited']);
});

test('errors of earlier code are forgotten when the kernel gets the corrected code, and do not make the notebook invalid', () => {
  const { live, cell } = workingNotebook();
  live.edit([{ type: 'set-code', cellId: 'a', code: 'corrected' }], 'user', null);
  live.apply([cellOp('a', { output: errorOutput(SYNTAX) }), done({ a: verdict(null, true, [SYNTAX]) })]);
  assert.equal(live.document.serialization.valid, true);
  assert.deepEqual(cell.structural, [SYNTAX], 'the end of the run needs them');
  live.editsGiven(live.takeEdits()!);
  assert.deepEqual(cell.structural, []);
});

test('code that the kernel sets itself replaces a waiting edit', () => {
  const { live, cell } = workingNotebook();
  live.edit([{ type: 'set-code', cellId: 'a', code: 'edited' }], 'user', null);
  const change = { type: 'set-code', cellId: 'a', code: 'of the kernel' } as const;
  live.apply([
    { op: 'notebook-document-transaction', source: 'code-mode', changes: [change] },
    done({ a: verdict('success') }),
  ]);
  assert.deepEqual([cell.code, cell.stale, live.takeEdits()], ['of the kernel', false, undefined]);
});

test('a cell that was edited without a kernel is shown as the next kernel reports it', () => {
  const { live, cell, kernel } = workingNotebook();
  live.detachKernel(kernel);
  live.edit([{ type: 'set-code', cellId: 'a', code: 'edited' }], 'user', null);
  live.attachKernel(kernel, 'edit');
  live.apply([cellOp('a', { status: 'running' }), done({ a: verdict('success') })]);
  assert.deepEqual([cell.stale, cell.ran?.code], [false, 'edited']);
});

function workingNotebook() {
  const { live } = openUnsavedNotebook({ a: 'accepted' }, { limitBytes: 1 << 20 });
  const kernel = { resume: () => undefined } as Partial<Kernel> as Kernel;
  live.attachKernel(kernel, 'edit');
  return { live, kernel, cell: live.view.get('a')! };
}
