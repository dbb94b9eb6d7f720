/** The result of a run, according to the kernel's verdicts on its cells. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellError, CellVerdict } from '#src/confined/processes/kernel/messages.ts';
import { cellOp, done, errorOutput, phase, verdict } from '../kernel-messages.ts';
import { record, statusesOf } from './recorded-run.ts';

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

/** The work of a run of the cells a and b, in a notebook that also has c. */
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
  test(`the result of a run: ${name}`, () => {
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

test('a run that is cancelled before its cells were requested ends as cancelled and runs no cell', () => {
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

test('a failed run names the errors and the cells that raised them', () => {
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

test('a failed ancestor that ran in the same run fails the run', () => {
  const { recorder, view } = record(
    ['b'],
    [phase('a', 'planned'), phase('b', 'planned'), phase('a', 'running')],
  );
  const ended = done({ a: verdict('exception'), b: verdict('cancelled', true) });
  view.applyVerdicts(ended);
  assert.deepEqual(recorder.verdict(ended, view), failedAt('a'));
});

test('a cell that was deleted during its run is left out', () => {
  const { recorder, view } = record(['a', 'b'], [phase('a', 'running')]);
  view.remove('a');
  const ended = done({ b: verdict('success') });
  view.applyVerdicts(ended);
  assert.deepEqual([recorder.verdict(ended, view), statusesOf(recorder, view)], [COMPLETED, ['success']]);
});
