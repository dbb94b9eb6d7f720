import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellOp } from '#src/confined/processes/kernel/messages.ts';
import { JoinedCellChanges } from '#src/notebook/open/cell-changes.ts';
import type { NotebookEvent } from '#src/notebook/open/cell-events.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { cellOp, done, output, stderr, stdout, verdict } from './kernel-messages.ts';

/** A notebook of two cells whose changes is flushed after each batch. */
function follow() {
  const view = new NotebookView(['a', 'b'].map((cell_id) => ({ cell_id, code: '1', options: {} })));
  let events: NotebookEvent[] = [];
  const changes = new JoinedCellChanges((event) => events.push(event));
  const told = () => {
    changes.flush();
    const data = events.map((event) => event.data);
    events = [];
    return data;
  };
  const batch = (...ops: readonly CellOp[]) => {
    for (const op of ops) changes.take(op, view.applyCellOp(op));
    return told();
  };
  return { view, changes, batch, told };
}

test('each state of a cell is one event that contains all its changes', () => {
  const { batch } = follow();
  const html = output('text/html', '<b>7</b>');
  const events = batch(
    cellOp('a', { status: 'queued' }),
    cellOp('a', { status: 'running', console: [] }),
    cellOp('a', { output: output('text/plain', '') }),
    cellOp('a', { console: [stdout('x')] }),
    cellOp('a', { console: [stdout('y')] }),
    cellOp('a', { console: [stderr('z')] }),
    cellOp('a', { output: html }),
    cellOp('a', { status: 'idle' }),
    cellOp('a', { staleInputs: false }),
  );
  assert.deepEqual(events, [
    { cellId: 'a', status: 'queued', stale: true },
    { cellId: 'a', status: 'running', console: [] },
    { cellId: 'a', channel: 'stdout', text: 'xy' },
    { cellId: 'a', channel: 'stderr', text: 'z' },
    {
      cellId: 'a',
      status: 'idle',
      stale: false,
      output: { channel: 'output', mimetype: 'text/html', data: '<b>7</b>' },
    },
  ]);
});

test('the event of a cell that begins to run follows the events of cells that began to wait earlier, in any batches of operations', () => {
  const ops = [
    cellOp('a', { status: 'queued' }),
    cellOp('a', { staleInputs: false }),
    cellOp('b', { status: 'queued' }),
    cellOp('b', { staleInputs: false }),
    cellOp('a', { staleInputs: false }),
    cellOp('a', { status: 'running' }),
  ];
  for (let cut = 0; cut <= ops.length; cut++) {
    const { batch } = follow();
    const events = [...batch(...ops.slice(0, cut)), ...batch(...ops.slice(cut))];
    const statuses = events.flatMap((event) =>
      'status' in event && 'cellId' in event ? [[event.cellId, event.status]] : [],
    );
    assert.deepEqual(
      statuses,
      [
        ['a', 'queued'],
        ['b', 'queued'],
        ['a', 'running'],
      ],
      `cut before ${cut}`,
    );
  }
});

test('an operation that changes nothing is not published, in the same batch or later', () => {
  const { batch, view, changes, told } = follow();
  batch(cellOp('a', { status: 'idle', staleInputs: false }));
  assert.deepEqual(batch(cellOp('a', { staleInputs: false }), cellOp('a', { status: 'idle' })), []);
  assert.deepEqual(batch(cellOp('a', { output: output('text/plain', '') })), []);
  for (const cell of view.applyVerdicts(done({ a: verdict('success') }))) changes.changed(cell);
  for (const cell of view.cells) if (cell.id === 'a') changes.changed(cell);
  assert.deepEqual(told(), []);
});

test('the removal of an output is published, even for an output from before the session', () => {
  const { batch, changes } = follow();
  changes.hasOutput('b');
  const nothing = output('text/plain', '');
  const { timestamp: _, ...shown } = nothing;
  batch(cellOp('a', { status: 'idle', staleInputs: false, output: output('text/html', '1') }));
  assert.deepEqual(batch(cellOp('a', { output: nothing })), [{ cellId: 'a', output: shown }]);
  assert.deepEqual(batch(cellOp('a', { output: nothing })), []);
  assert.deepEqual(batch(cellOp('b', { output: nothing })), [
    { cellId: 'b', status: 'stale', stale: true, output: shown },
  ]);
});

test('a cell that runs twice in one batch shows both runs', () => {
  const { batch } = follow();
  const run = ['queued', 'running', 'idle'].map((status) =>
    cellOp('a', { status: status as NonNullable<CellOp['status']> }),
  );
  const statuses = batch(...run, ...run).map((data) => ('status' in data ? data.status : undefined));
  assert.deepEqual(statuses, ['queued', 'running', 'stale', 'queued', 'running', 'stale']);
});

test('a scratchpad has only the state that the kernel reports', () => {
  const { changes, told } = follow();
  changes.take(cellOp('__scratch__', { status: 'running' }), undefined);
  changes.take(cellOp('__scratch__', { console: [stdout('1')] }), undefined);
  changes.take(cellOp('__scratch__', { status: 'idle' }), undefined);
  assert.deepEqual(told(), [
    { cellId: '__scratch__', status: 'running' },
    { cellId: '__scratch__', channel: 'stdout', text: '1' },
    { cellId: '__scratch__', status: 'idle' },
  ]);
});
