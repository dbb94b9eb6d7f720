/** Memory that a piece of work holds because of a kernel's messages. Notebook code can forge any of them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellError, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';
import type { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { codeWork } from '#src/notebook/work/code-work.ts';
import { RunRecorder } from '#src/notebook/work/run-recorder.ts';
import type { Store } from '#storage/store.ts';
import { cellOp, done, errorOutput, phase, verdict } from '../kernel-messages.ts';

const viewOf = (...ids: string[]) =>
  new NotebookView(ids.map((cell_id) => ({ cell_id, code: cell_id, options: {} })));

/** Returns the warnings of a run of the cell a that has followed these messages. */
function warningsOf(messages: readonly KernelMessage[]): string[] {
  const [recorder, view] = [new RunRecorder(['a'], true), viewOf('a')];
  for (const message of messages) recorder.follow(message, view);
  const { parts } = recorder.output(view).output;
  return parts.flatMap((part) => (part.type === 'warning' ? [part.message] : []));
}

const missing = (...packages: string[]): KernelMessage => ({ op: 'missing-package-alert', packages });

test('a run names at most a hundred missing packages, and counts the remaining packages', () => {
  const names = Array.from({ length: 101 }, (_, n) => `p${n}`);
  const all = warningsOf([missing(...names.slice(0, 60)), missing(...names.slice(50, 100))]);
  assert.deepEqual(all, [`Not installed: ${names.slice(0, 100).join(', ')}.`]);
  const more = warningsOf([missing(...names), missing('p3')]);
  assert.deepEqual(more, [`Not installed: ${names.slice(0, 100).join(', ')} and more.`]);
});

test('a missing package is not named when its name has more than two hundred characters', () => {
  const name = 'p'.repeat(200);
  assert.deepEqual(warningsOf([missing(name, `${name}p`)]), [`Not installed: ${name}.`]);
  assert.deepEqual(warningsOf([missing(`${name}p`)]), []);
});

test('a run ignores cells that the notebook does not have', () => {
  const [recorder, view] = [new RunRecorder([], true), viewOf('a')];
  for (const id of ['a', 'gone']) {
    recorder.follow(phase(id, 'planned'), view);
    recorder.follow(phase(id, 'running'), view);
  }
  assert.deepEqual([...recorder.ran], ['a']);
  const warning = { op: 'bridge-warning', what: 'An output', reason: 'it is too large' } as const;
  assert.equal(warningsOf([{ ...warning, cellId: 'gone' }]).length, 0);
  assert.equal(warningsOf([{ ...warning, cellId: 'a' }]).length, 1);
});

test('a run follows at most twenty thousand cells, even if cells are created and deleted one after the other', () => {
  const [recorder, view] = [new RunRecorder([], true), viewOf()];
  for (let n = 0; n < 20_001; n++) {
    view.add(`c${n}`, '', {});
    recorder.follow(phase(`c${n}`, 'planned'), view);
    recorder.follow(phase(`c${n}`, 'running'), view);
    view.remove(`c${n}`);
  }
  assert.deepEqual([recorder.ran.size, recorder.ran.has('c19999')], [20_000, true]);
});

test("a run keeps twenty thousand characters of an error's message", () => {
  for (const [length, kept] of [
    [19_997, 'E: '.length + 19_997],
    [19_998, 20_000 + '…'.length],
  ] as const) {
    const [recorder, view] = [new RunRecorder(['a'], true), viewOf('a')];
    view.applyCellOp(cellOp('a', { output: errorOutput({ type: 'E', msg: 'x'.repeat(length) }) }));
    const ended = done({ a: verdict('exception') });
    view.applyVerdicts(ended);
    assert.equal(recorder.verdict(ended, view).failure?.message.length, kept);
  }
});

/** Returns the result of a call of code in a notebook of the cell a, and how often it has stored outputs. */
function resultOf(messages: readonly KernelMessage[]): { result: CodeResult; stored: number } {
  const results: CodeResult[] = [];
  let stored = 0;
  const document = { serialization: { app: { options: {} } } } as LiveNotebook['document'];
  const store = { isFull: false, write: () => stored++ } as unknown as Store;
  const call = { code: '', by: 'ada', keep: false, toolCallId: undefined, trace: undefined };
  const plan = codeWork(store, call, {
    id: 'call',
    live: { view: viewOf('a'), document } as LiveNotebook,
    resolve: ({ result }) => results.push(result),
  });
  for (const message of messages) plan.follow(message);
  plan.ended({ status: 'completed', failure: null });
  return { result: results[0]!, stored };
}

const failing = (cellId: string, ...errors: readonly CellError[]) =>
  cellOp(cellId, { output: errorOutput(...errors) });

test('a code call has at most a thousand errors, and the number of omitted errors', () => {
  const errors = Array.from({ length: 1000 }, () => ({ type: 'E', msg: 'no' }));
  const full = resultOf([failing('a', ...errors)]).result.errors;
  assert.deepEqual([full.length, full.at(-1)?.type], [1000, 'E']);
  const beyond = resultOf([failing('a', ...errors), failing('a', ...errors.slice(0, 2))]).result.errors;
  assert.deepEqual([beyond.length, beyond.at(-1)?.message], [1001, '2 more errors were left out.']);
});

test("a code call keeps 64 KiB of an error's message, and two hundred characters of its type", () => {
  const [message, type] = ['x'.repeat(64 * 1024), 'E'.repeat(200)];
  const errors = [
    { type, msg: message },
    { type: `${type}E`, msg: `${message}x` },
  ];
  assert.deepEqual(resultOf([failing('a', ...errors)]).result.errors, [
    { type, message, cellId: 'a' },
    { type: `${type}…`, message: `${message}…`, cellId: 'a' },
  ]);
});

test('a code call stores only outputs of cells of the notebook', () => {
  assert.equal(resultOf([phase('gone', 'running')]).stored, 0);
  assert.equal(resultOf([phase('a', 'running')]).stored, 1);
  const error = { type: 'E', msg: 'no' };
  assert.equal(resultOf([failing('x'.repeat(129), error)]).result.errors.length, 0);
  assert.equal(resultOf([failing('new', error)]).result.errors.length, 1, 'it may be created by the code');
});
