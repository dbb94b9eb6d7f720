/** The record of a run: the result of each cell, warnings and assets. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellResult } from '#src/contract/wire/run.ts';
import { RunRecorder } from '#src/notebook/work/run-recorder.ts';
import { MAX_INLINE_BYTES } from '#src/runtime/runs/run-output.ts';
import { cellOp, done, errorOutput, output, phase, stdout, verdict } from '../kernel-messages.ts';
import { conclude, record, statusesOf, viewOf } from './recorded-run.ts';

const CYCLE = { type: 'cycle' };

test('the output lists the cells in the order in which they ran, and then the cells that did not run', () => {
  const { recorder, view } = record(
    ['a', 'b', 'c'],
    [
      phase('c', 'planned'),
      phase('b', 'planned'),
      phase('b', 'running'),
      cellOp('b', { output: output('text/plain', '2'), console: [stdout('printed')] }),
      phase('b', 'completed'),
      phase('a', 'running'),
      cellOp('c', { output: output('text/plain', 'of an earlier run'), console: [stdout('long ago')] }),
    ],
  );
  conclude(recorder, view, done({ a: verdict(null), b: verdict('success'), c: verdict(null) }));
  const { output: saved } = recorder.output(view);
  const [b, a, c] = saved.parts as [{ durationMs: number }, unknown, unknown];
  assert.equal(saved.stored, true);
  assert.deepEqual(
    [{ ...b, durationMs: 0 }, a, c],
    [
      {
        type: 'cell-result',
        cellId: 'b',
        status: 'success',
        outputs: [{ mimetype: 'text/plain', data: '2' }],
        console: [{ channel: 'stdout', mimetype: 'text/plain', data: 'printed' }],
        durationMs: 0,
      },
      { type: 'cell-result', cellId: 'a', status: 'interrupted', outputs: [], console: [], durationMs: null },
      { type: 'cell-result', cellId: 'c', status: 'cancelled', outputs: [], console: [], durationMs: null },
    ],
  );
  assert.ok(b.durationMs >= 0);
  assert.deepEqual([...recorder.ran], ['b', 'a']);
});

test('every verdict has its status in the result', () => {
  const words = {
    success: 'success',
    exception: 'error',
    'marimo-error': 'error',
    stopped: 'stopped',
    cancelled: 'cancelled',
    interrupted: 'interrupted',
    disabled: 'disabled',
  } as const;
  const seen = (Object.keys(words) as (keyof typeof words)[]).map((status) => {
    const { recorder, view } = record(['a'], [phase('a', 'running')]);
    conclude(recorder, view, done({ a: verdict(status) }));
    return [status, statusesOf(recorder, view)[0]];
  });
  assert.deepEqual(Object.fromEntries(seen), words);
  const { recorder, view } = record(['a'], []);
  conclude(recorder, view, done({ a: verdict(null, true, [CYCLE]) }));
  assert.deepEqual(statusesOf(recorder, view), ['error']);
});

test('when the verdicts are missing, finished cells have their new results, and no earlier results', () => {
  const messages = [
    phase('a', 'running'),
    cellOp('a', { output: output('text/plain', '1') }),
    phase('a', 'completed'),
    phase('b', 'running'),
    cellOp('b', { output: errorOutput({ type: 'exception', exception_type: 'KeyError' }) }),
    phase('b', 'completed'),
    phase('c', 'running'),
  ];
  const { recorder, view } = record(['a', 'b', 'c', 'd'], messages);
  const earlier = verdict('success');
  view.applyVerdicts(done({ a: earlier, b: earlier, c: earlier, d: earlier }));
  assert.deepEqual(statusesOf(recorder, view), ['success', 'error', 'interrupted', 'cancelled']);
  view.applyCellOp(cellOp('b', { output: errorOutput({ type: 'interruption' }) }));
  assert.equal(statusesOf(recorder, view)[1], 'interrupted');
});

test('a cell that never ran shows its error, but no earlier output', () => {
  const error = { type: 'syntax', msg: 'invalid syntax' };
  const { recorder, view } = record(['a'], [cellOp('a', { output: errorOutput(error) })]);
  conclude(recorder, view, done({ a: verdict('marimo-error') }));
  const [part] = recorder.output(view).output.parts;
  assert.ok(part?.type === 'cell-result');
  assert.deepEqual(part.outputs, [{ mimetype: 'application/vnd.marimo+error', data: [error] }]);
});

test('notes about cut, missing and separately stored outputs follow the cells', () => {
  const { recorder, view } = record(
    ['a'],
    [
      phase('a', 'running'),
      cellOp('a', {
        console: [stdout('x'.repeat(70_000))],
        output: output('text/plain', 'y'.repeat(MAX_INLINE_BYTES + 1)),
      }),
      { op: 'missing-package-alert', packages: ['polars', 'torch'] },
      { op: 'missing-package-alert', packages: ['polars'] },
    ],
  );
  conclude(recorder, view, done({ a: verdict('success') }));
  const { output: saved, shelf } = recorder.output(view);
  const [assetId, { sha256 }] = [...shelf.assets][0]!;
  assert.deepEqual(saved.parts.slice(1), [
    {
      type: 'warning',
      code: 'console_truncated',
      cellId: 'a',
      message: `The cell a printed ${70_000 - 65_536} more characters between the beginning and the end kept here.`,
    },
    { type: 'warning', code: 'missing_packages', message: 'Not installed: polars, torch.' },
    { type: 'asset', assetId, mimetype: 'text/plain', bytes: MAX_INLINE_BYTES + 1, sha256 },
  ]);
});

test('a run with no-store stores no output', () => {
  const recorder = new RunRecorder(['a'], false);
  const view = viewOf();
  recorder.follow(phase('a', 'running'), view);
  view.applyCellOp(cellOp('a', { output: output('text/plain', 'y'.repeat(MAX_INLINE_BYTES + 1)) }));
  const { output: saved, shelf } = recorder.output(view);
  assert.deepEqual([saved, shelf.assets.size], [{ stored: false, parts: [] }, 0]);
});

test('a run that ends just after a cell has begun has no output and no text of an earlier run of the cell', () => {
  const earlier = [
    phase('a', 'running'),
    cellOp('a', { status: 'running', console: [] }),
    cellOp('a', { console: [stdout('earlier text')], output: output('text/plain', 'earlier') }),
    phase('a', 'completed'),
  ];
  const { view } = record(['a'], earlier);
  const recorder = new RunRecorder(['a'], true);
  const shown = () => recorder.output(view).output.parts[0] as CellResult;
  recorder.follow(phase('a', 'running'), view);
  assert.deepEqual([shown().outputs, shown().console], [[], []]);
  assert.deepEqual(recorder.printedBy('a', view)?.console, []);
  view.applyCellOp(cellOp('a', { status: 'running', console: [] }));
  view.applyCellOp(cellOp('a', { console: [stdout('later text')] }));
  assert.deepEqual([shown().outputs, shown().console.map(({ data }) => data)], [[], ['later text']]);
});
