import assert from 'node:assert/strict';
import test from 'node:test';
import type { BridgeDone, CellError, CellVerdict, KernelMessage } from '#src/kernel/messages.ts';
import { NotebookView } from '#src/notebook/view.ts';
import { RunRecorder } from '#src/notebook/work/run-recorder.ts';
import { MAX_INLINE_BYTES } from '#src/runs/run-output.ts';
import { cellOp, done, errorOutput, output, phase, stdout, verdict } from '../kernel-messages.ts';

const CYCLE = { type: 'cycle' };

interface Case {
  readonly name: string;
  readonly cells: Readonly<Record<string, CellVerdict>>;
  readonly cancelRequested?: boolean;
  readonly interrupted?: boolean;
  readonly error?: string;
  readonly planned?: readonly string[];
  readonly end: unknown;
}

const COMPLETED = { status: 'completed', failure: null };
const CANCELLED = { status: 'cancelled', failure: null };
const failedAt = (...cells: string[]) => ({
  status: 'failed',
  failure: { code: 'cell_failed', message: `The cell ${cells[0]} failed.`, cells },
});

/** Of a run of the cells a and b, in a notebook that also has c. */
const VERDICTS: readonly Case[] = [
  { name: 'all succeeded', cells: { a: verdict('success'), b: verdict('success') }, end: COMPLETED },
  {
    name: 'mo.stop and disabled cells are no failures',
    cells: { a: verdict('stopped'), b: verdict('disabled') },
    end: COMPLETED,
  },
  {
    name: 'one raised, the one behind it was cancelled',
    cells: { a: verdict('exception'), b: verdict('cancelled', true) },
    end: failedAt('a'),
  },
  {
    name: 'both raised',
    cells: { a: verdict('exception'), b: verdict('marimo-error') },
    end: failedAt('a', 'b'),
  },
  {
    name: 'a cell that was not part of it raised before',
    cells: { a: verdict('success'), b: verdict('success'), c: verdict('exception') },
    end: COMPLETED,
  },
  {
    name: 'a requested cell is part of a cycle',
    cells: { a: verdict(null, true, [CYCLE]), b: verdict('success') },
    end: {
      status: 'failed',
      failure: {
        code: 'cell_failed',
        message: 'The cell a cannot run: the cells depend on each other in a cycle.',
        cells: ['a'],
      },
    },
  },
  {
    name: 'a cell that the kernel only looked at has a structural error',
    planned: ['c'],
    cells: { a: verdict('success'), b: verdict('success'), c: verdict('marimo-error', true, [CYCLE]) },
    end: COMPLETED,
  },
  {
    name: 'the notebook raised KeyboardInterrupt itself, in what no cell fails for',
    cells: { a: verdict('success'), b: verdict('cancelled') },
    interrupted: true,
    end: {
      status: 'failed',
      failure: {
        code: 'cell_failed',
        message: 'The notebook interrupted itself before all of its cells had run.',
      },
    },
  },
  {
    name: 'interrupted on request',
    cells: { a: verdict('interrupted'), b: verdict('cancelled') },
    cancelRequested: true,
    interrupted: true,
    end: CANCELLED,
  },
  {
    name: 'interrupted on request, which only the cell says',
    cells: { a: verdict('interrupted'), b: verdict('cancelled') },
    cancelRequested: true,
    end: CANCELLED,
  },
  {
    name: 'interrupted on request, and the command said so as an error',
    cells: { a: verdict('interrupted'), b: verdict('cancelled') },
    cancelRequested: true,
    interrupted: true,
    error: 'KeyboardInterrupt',
    end: CANCELLED,
  },
  {
    name: 'interrupted on request between two cells, which only the command says',
    cells: { a: verdict('success'), b: verdict('cancelled') },
    cancelRequested: true,
    interrupted: true,
    end: CANCELLED,
  },
  {
    name: 'interrupted by the notebook itself, and the command said so as an error',
    cells: { a: verdict('interrupted'), b: verdict('cancelled') },
    interrupted: true,
    error: 'KeyboardInterrupt',
    end: failedAt('a'),
  },
  {
    name: 'done before the request reached it',
    cells: { a: verdict('success'), b: verdict('success') },
    cancelRequested: true,
    end: COMPLETED,
  },
  {
    name: 'failed before the request reached it',
    cells: { a: verdict('exception'), b: verdict('cancelled') },
    cancelRequested: true,
    end: failedAt('a'),
  },
  {
    name: 'interrupted by the notebook itself',
    cells: { a: verdict('interrupted'), b: verdict('cancelled') },
    interrupted: true,
    end: failedAt('a'),
  },
  {
    name: 'the command itself failed',
    cells: {},
    error: 'no such cell',
    end: { status: 'failed', failure: { code: 'kernel_command_failed', message: 'no such cell' } },
  },
];

for (const {
  name,
  cells,
  cancelRequested = false,
  interrupted = false,
  error = null,
  planned = [],
  end,
} of VERDICTS) {
  test(`a run is judged: ${name}`, () => {
    const { recorder, view } = record(
      ['a', 'b'],
      planned.map((id) => phase(id, 'planned')),
    );
    recorder.cancelRequested = cancelRequested;
    const ended = done(cells, { interrupted, error });
    view.applyVerdicts(ended);
    assert.deepEqual(recorder.verdict(ended, view), end);
  });
}

test('a run that was cancelled before its cells were asked for ends so, with none of them run', () => {
  const { recorder, view } = record(['a', 'b'], []);
  recorder.isPreparing = true;
  recorder.cancelRequested = true;
  const ended = done({ a: verdict('success'), b: verdict(null) });
  view.applyVerdicts(ended);
  assert.deepEqual(recorder.verdict(ended, view), CANCELLED);
  const { parts } = recorder.output(view).output;
  assert.deepEqual(
    parts.map((part) => part.type === 'cell-result' && part.status),
    ['cancelled', 'cancelled'],
  );
});

test('a failed run says what was raised, and names the cells that raised', () => {
  const rows: [CellError, string][] = [
    [
      { type: 'exception', exception_type: 'ZeroDivisionError', msg: 'division by zero' },
      'ZeroDivisionError: division by zero',
    ],
    [{ type: 'syntax', msg: 'invalid syntax (line 1)' }, 'syntax: invalid syntax (line 1)'],
    [{ type: 'exception', exception_type: null }, 'The cell a has an error: exception.'],
  ];
  for (const [error, message] of rows) {
    const { recorder, view } = record(
      ['a'],
      [phase('a', 'running'), cellOp('a', { output: errorOutput(error) })],
    );
    const ended = done({ a: verdict('exception') });
    view.applyVerdicts(ended);
    assert.deepEqual(recorder.verdict(ended, view).failure, { code: 'cell_failed', message, cells: ['a'] });
  }
});

test('an ancestor that ran along and failed fails the run', () => {
  const { recorder, view } = record(
    ['b'],
    [phase('a', 'planned'), phase('b', 'planned'), phase('a', 'running')],
  );
  const ended = done({ a: verdict('exception'), b: verdict('cancelled', true) });
  view.applyVerdicts(ended);
  assert.deepEqual(recorder.verdict(ended, view), failedAt('a'));
});

test('the output has the cells in the order in which they ran, then those that did not', () => {
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
  judge(recorder, view, done({ a: verdict(null), b: verdict('success'), c: verdict(null) }));
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

test('every verdict has its word in the result', () => {
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
    judge(recorder, view, done({ a: verdict(status) }));
    return [status, statusesOf(recorder, view)[0]];
  });
  assert.deepEqual(Object.fromEntries(seen), words);
  const { recorder, view } = record(['a'], []);
  judge(recorder, view, done({ a: verdict(null, true, [CYCLE]) }));
  assert.deepEqual(statusesOf(recorder, view), ['error']);
});

test('where no verdict comes any more, cells that finished have their results, and no earlier ones', () => {
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

test('a cell that never ran shows its error, and nothing else of what it showed before', () => {
  const error = { type: 'syntax', msg: 'invalid syntax' };
  const { recorder, view } = record(['a'], [cellOp('a', { output: errorOutput(error) })]);
  judge(recorder, view, done({ a: verdict('marimo-error') }));
  const [part] = recorder.output(view).output.parts;
  assert.ok(part?.type === 'cell-result');
  assert.deepEqual(part.outputs, [{ mimetype: 'application/vnd.marimo+error', data: [error] }]);
});

test('what was cut off, what is missing and what is kept apart is said behind the cells', () => {
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
  judge(recorder, view, done({ a: verdict('success') }));
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

test('a run whose output is not to be kept keeps none', () => {
  const recorder = new RunRecorder(['a'], false);
  const view = viewOf();
  recorder.follow(phase('a', 'running'), view);
  view.applyCellOp(cellOp('a', { output: output('text/plain', 'y'.repeat(MAX_INLINE_BYTES + 1)) }));
  const { output: saved, shelf } = recorder.output(view);
  assert.deepEqual([saved, shelf.assets.size], [{ stored: false, parts: [] }, 0]);
});

test('a cell that was deleted while it ran is left out', () => {
  const { recorder, view } = record(['a', 'b'], [phase('a', 'running')]);
  view.remove('a');
  const ended = done({ b: verdict('success') });
  view.applyVerdicts(ended);
  assert.deepEqual([recorder.verdict(ended, view), statusesOf(recorder, view)], [COMPLETED, ['success']]);
});

function viewOf(): NotebookView {
  return new NotebookView(
    ['a', 'b', 'c', 'd'].map((id) => ({ cell_id: id, code: `code of ${id}`, options: {} })),
  );
}

/** What a run of `requested` makes of these messages, view included. */
function record(requested: readonly string[], messages: readonly KernelMessage[]) {
  const recorder = new RunRecorder(requested, true);
  const view = viewOf();
  for (const message of messages) {
    recorder.follow(message, view);
    if (message.op === 'cell-op') view.applyCellOp(message);
  }
  return { recorder, view };
}

/** The kernel's verdicts, taken as a run takes them. */
function judge(recorder: RunRecorder, view: NotebookView, ended: BridgeDone): void {
  view.applyVerdicts(ended);
  recorder.verdict(ended, view);
}

function statusesOf(recorder: RunRecorder, view: NotebookView): string[] {
  return recorder
    .output(view)
    .output.parts.flatMap((part) => (part.type === 'cell-result' ? [part.status] : []));
}
