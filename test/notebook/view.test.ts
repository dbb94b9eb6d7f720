import assert from 'node:assert/strict';
import test from 'node:test';
import type { CellStatus } from '#src/confined/processes/kernel/messages.ts';
import type { ShownStatus } from '#src/contract/wire/session.ts';
import { NotebookView, shownStatus, type ViewCell } from '#src/notebook/open/view.ts';
import { cellOp, done, errorOutput, output, stdout, verdict } from './kernel-messages.ts';

test('a new cell is stale, has no output, and has not run', () => {
  const { console, saved, ...cell } = viewOf('a').get('a')!;
  assert.deepEqual(cell, {
    id: 'a',
    code: 'code of a',
    options: {},
    version: 0,
    codeVersion: 0,
    activity: 'idle',
    stale: true,
    output: null,
    ran: null,
    ended: null,
    kernelCode: null,
    isUnrunEdit: false,
    structural: [],
    verdict: null,
  });
  assert.deepEqual(saved, { cell_id: 'a', code: 'code of a', options: {} });
  assert.deepEqual([console.entries(), console.omitted], [[], 0]);
});

test('an operation changes the named members of a cell, and keeps members that are null', () => {
  const view = viewOf('a');
  view.applyCellOp(cellOp('a', { status: 'running' }));
  view.applyCellOp(cellOp('a', { staleInputs: false }));
  view.applyCellOp(cellOp('a', { output: output('text/html', '<b>1</b>') }));
  view.applyCellOp(cellOp('a', { console: [stdout('one ')] }));
  view.applyCellOp(cellOp('a', { console: [stdout('two')] }));
  const cell = view.applyCellOp(cellOp('a', {}))!;
  assert.deepEqual(
    [cell.activity, cell.stale, cell.output, cell.console.entries()],
    ['running', false, output('text/html', '<b>1</b>'), [stdout('one two')]],
  );
});

test('only an empty console in an operation clears the console of a cell', () => {
  const view = viewOf('a');
  view.applyCellOp(cellOp('a', { console: [stdout('old')] }));
  view.applyCellOp(cellOp('a', { console: null, status: 'queued' }));
  assert.deepEqual(view.get('a')?.console.entries(), [stdout('old')]);
  view.applyCellOp(cellOp('a', { console: [] }));
  assert.deepEqual(view.get('a')?.console.entries(), []);
});

test('an operation on a missing cell is ignored', () => {
  assert.equal(viewOf('a').applyCellOp(cellOp('gone', { status: 'running' })), undefined);
});

test('the displayed status follows activity, then settings, then errors, then staleness', () => {
  const rows: [Partial<ViewCell>, ShownStatus][] = [
    [{ activity: 'running', stale: true, structural: [{ type: 'cycle' }] }, 'running'],
    [{ activity: 'queued', stale: true }, 'queued'],
    [{ activity: 'disabled-transitively', structural: [{ type: 'cycle' }] }, 'disabled'],
    [{ options: { disabled: true }, stale: true }, 'disabled'],
    [{ structural: [{ type: 'cycle' }], stale: true }, 'error'],
    [{ stale: true, ended: 'exception' }, 'stale'],
    [{ stale: false, ended: 'exception' }, 'error'],
    [{ stale: false, ended: 'marimo-error' }, 'error'],
    ...(['success', 'stopped', 'cancelled', 'interrupted', 'disabled', null] as CellStatus[]).map(
      (ended): [Partial<ViewCell>, ShownStatus] => [{ stale: false, ended }, 'idle'],
    ),
  ];
  for (const [members, status] of rows) {
    assert.equal(shownStatus({ ...viewOf('a').get('a')!, ...members }), status, JSON.stringify(members));
  }
});

test('a verdict determines the state of a cell, and only cells whose displayed state changes are returned', () => {
  const view = viewOf('a', 'b', 'c');
  for (const id of ['a', 'b']) view.applyCellOp(cellOp(id, { status: 'running', staleInputs: false }));
  const cells = {
    a: verdict('success'),
    b: verdict('exception'),
    c: verdict(null, true),
    gone: verdict('success'),
  };
  assert.deepEqual(view.applyVerdicts(done(cells)).map(shown), ['a idle', 'b error']);
  assert.deepEqual(view.applyVerdicts(done(cells)).map(shown), []);
  assert.deepEqual(view.cells.map(shown), ['a idle', 'b error', 'c stale']);
});

test('a cell whose code has not run is stale, unless it has no code', () => {
  const view = new NotebookView([
    { cell_id: 'code', code: 'x = 1', options: {} },
    { cell_id: 'blank', code: ' \n', options: {} },
  ]);
  view.applyVerdicts(done({ code: verdict(null), blank: verdict(null) }));
  assert.deepEqual(view.cells.map(shown), ['code stale', 'blank idle']);
});

test('a cell that is edited during its run stays stale until its new code begins to run, although the kernel reports the end of the old code', () => {
  const view = viewOf('a');
  const cell = view.get('a')!;
  view.applyCellOp(cellOp('a', { status: 'running' }));
  view.setCode(cell, 'edited', true);
  view.applyVerdicts(done({ a: verdict('success') }));
  assert.equal(cell.stale, true);
  view.codeDelivered('a'); // the kernel has the edit, and has not carried it out
  view.applyCellOp(cellOp('a', { staleInputs: false }));
  view.applyVerdicts(done({ a: verdict('success') }));
  assert.equal(cell.stale, true);
  view.applyCellOp(cellOp('a', { status: 'running', staleInputs: false }));
  view.applyVerdicts(done({ a: verdict('success') }));
  assert.deepEqual(view.cells.map(shown), ['a idle']);
});

test('a cell is stale at the end of a run if it used a value of a cell that was edited meanwhile', () => {
  const view = viewOf('a', 'b', 'c');
  view.setVariables([{ name: 'x', declaredBy: ['a'], usedBy: ['b'] }]);
  view.setCode(view.get('a')!, 'x = 2', true);
  view.applyVerdicts(done({ a: verdict('success'), b: verdict('success'), c: verdict('success') }));
  assert.deepEqual(view.cells.map(shown), ['a stale', 'b stale', 'c idle']);
});

test('a cell that ran is stale if an ancestor has changed again', () => {
  const view = viewOf('a');
  view.applyVerdicts(done({ a: verdict('success') }));
  assert.deepEqual(view.applyVerdicts(done({ a: verdict('success', true) })).map(shown), ['a stale']);
});

test('a cell whose staleness changed is returned, even when its status does not show it', () => {
  const view = new NotebookView([{ cell_id: 'a', code: 'x = 1', options: { disabled: true } }]);
  assert.deepEqual(view.applyVerdicts(done({ a: verdict('disabled') })).map(shown), ['a disabled']);
  assert.deepEqual(view.applyVerdicts(done({ a: verdict('disabled') })).map(shown), []);
});

test('structural errors appear and disappear with the verdicts', () => {
  const view = viewOf('a');
  const cycle = { type: 'cycle' };
  view.applyVerdicts(done({ a: verdict('marimo-error', false, [cycle]) }));
  assert.deepEqual([view.get('a')?.structural, view.cells.map(shown)], [[cycle], ['a error']]);
  view.applyVerdicts(done({ a: verdict('success') }));
  assert.deepEqual([view.get('a')?.structural, view.cells.map(shown)], [[], ['a idle']]);
});

test('a cell that an ancestor disables stays disabled after verdicts', () => {
  const view = viewOf('a');
  view.applyCellOp(cellOp('a', { status: 'disabled-transitively' }));
  view.applyVerdicts(done({ a: verdict('disabled', true) }));
  assert.deepEqual(view.cells.map(shown), ['a disabled']);
});

test('different code makes a cell stale and gives the cell another version; the same code changes nothing', () => {
  const view = viewOf('a');
  const cell = view.get('a')!;
  view.applyVerdicts(done({ a: verdict('success') }));
  view.setCode(cell, 'code of a');
  assert.deepEqual([cell.version, cell.codeVersion, cell.stale], [0, 0, false]);
  view.setCode(cell, 'other');
  view.setCode(cell, 'other still');
  assert.deepEqual([cell.code, cell.codeVersion, cell.stale], ['other still', 2, true]);
  assert.ok(cell.version > 0);
});

test('a cell never gets an earlier version again, even after a deletion of the cell or a reload of the notebook', () => {
  const first = '2026-01-01T00:00:00.000Z';
  const second = '2026-01-01T00:00:00.001Z';
  const saved = { cell_id: 'a', code: '1', options: {} };
  const view = new NotebookView([saved], first);
  const versions = [view.get('a')!.version];
  view.setCode(view.get('a')!, '2');
  versions.push(view.get('a')!.version);
  view.saved(second);
  assert.equal(new NotebookView([saved], second).get('a')?.version, versions.at(-1), 'it has the same code');
  view.remove('a');
  view.saved('2026-01-01T00:00:00.002Z');
  versions.push(view.add('a', '1', {}).version);
  view.saved('2026-01-01T00:00:00.003Z');
  view.setOptions(view.get('a')!, { hide_code: true });
  versions.push(view.get('a')!.version);
  assert.deepEqual(versions, [...new Set(versions)].sort());
});

test('code mode treats a cell that a user has recreated as unread', () => {
  const view = new NotebookView([], '2026-01-01T00:00:00.000Z');
  const made = view.add('a', '1', {});
  for (const code of ['2', '3', '4']) view.setCode(made, code);
  view.remove('a');
  assert.ok(view.add('a', '5', {}, false).codeVersion > made.codeVersion);
});

test('when the kernel is lost, outputs stay, and every cell is stale and idle', () => {
  const view = viewOf('a', 'b');
  view.applyCellOp(
    cellOp('a', { status: 'running', output: output('text/plain', '1'), console: [stdout('x')] }),
  );
  view.applyVerdicts(done({ b: verdict('exception') }));
  view.applyCellOp(cellOp('b', { output: errorOutput({ type: 'exception' }) }));
  view.setVariables([{ name: 'x', declaredBy: ['a'], usedBy: ['b'] }]);
  view.kernelLost();
  assert.deepEqual(view.cells.map(shown), ['a stale', 'b stale']);
  assert.deepEqual(
    view.cells.map(({ output, console, ended }) => [output, console.entries(), ended]),
    [
      [output('text/plain', '1'), [stdout('x')], null],
      [errorOutput({ type: 'exception' }), [], null],
    ],
  );
  assert.deepEqual([view.variables, [...view.ancestors(['b'])]], [[], ['b']]);
});

test('the ancestors of cells are these cells and all cells that they depend on, in document order', () => {
  const view = viewOf('d', 'a', 'b', 'c', 'e');
  view.setVariables([
    { name: 'x', declaredBy: ['a'], usedBy: ['b'] },
    { name: 'y', declaredBy: ['b'], usedBy: ['c'] },
    { name: 'z', declaredBy: ['d', 'e'], usedBy: ['c'] },
    { name: 'loop', declaredBy: ['c'], usedBy: ['a'] },
    { name: 'ghost', declaredBy: ['gone'], usedBy: ['e'] },
  ]);
  const ancestors = (...ids: string[]) => [...view.ancestors(ids)].join(' ');
  assert.deepEqual(
    [ancestors('e'), ancestors('b'), ancestors('d', 'e'), ancestors(), ancestors('gone')],
    ['e', 'd a b c e', 'd e', '', ''],
  );
});

test('a cell that is created after the kernel has sent its variables has ancestors', () => {
  const view = viewOf('a');
  view.setVariables([{ name: 'x', declaredBy: ['a'], usedBy: ['b'] }]);
  assert.deepEqual([...view.ancestors(['b'])], []);
  view.add('b', '', {});
  assert.deepEqual([...view.ancestors(['b'])], ['a', 'b']);
});

function viewOf(...ids: string[]): NotebookView {
  return new NotebookView(ids.map((id) => ({ cell_id: id, code: `code of ${id}`, options: {} })));
}

function shown(cell: ViewCell): string {
  return `${cell.id} ${shownStatus(cell)}`;
}
