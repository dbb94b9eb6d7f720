import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { firstIdAt, newId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import { LiveNotebooks } from '#src/notebook/open/live-notebooks.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { keepOutputs, widgetsOf } from '#src/notebook/saved/saved-outputs.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { sessionRuns } from '#storage/records/runs.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_one' as WorkspaceId;
const CELLS = Array.from({ length: 250 }, (_, i) => ({ cell_id: `cell-${i}`, code: `${i}` }));

/**
 * A notebook whose cells have outputs, and a function that gives them other outputs, as runs do.
 */
async function withOutputs(t: TestContext) {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, WORKSPACE);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const { document } = await notebooks.create(WORKSPACE, { serialization: { cells: CELLS } });
  const session = { workspaceId: WORKSPACE, id: document.id };
  const open = () =>
    new LiveNotebooks({ store, notebooks, makeStream: (sessionId) => new SessionStream({ sessionId }) });
  const live = open();
  const show = async (data: string, worker = live) => {
    const notebook = worker.of(session);
    for (const cell of notebook.view.cells)
      cell.output = { channel: 'output', mimetype: 'text/plain', data, timestamp: 1 };
    keepOutputs(store, notebook, new Set(CELLS.map(({ cell_id }) => cell_id)));
    await store.durable();
  };
  const shown = () => [...new Set(live.of(session).view.cells.map(({ output }) => output?.data))];
  return { store, live, open, notebooks, session, show, shown };
}

test('many outputs are read in slices, and are shown when their notebook is loaded', async (t) => {
  const { live, session, show, shown } = await withOutputs(t);
  await show('first');
  live.forget(session);
  const reading = live.prepareOutputs(session);
  assert.ok(reading !== undefined);
  await reading;
  assert.deepEqual(shown(), ['first']);
  assert.equal(live.prepareOutputs(session), undefined);
});

test('outputs that were read before a run are not shown after the run', async (t) => {
  const { live, session, show, shown } = await withOutputs(t);
  await show('first');
  live.forget(session);
  const reading = live.prepareOutputs(session);
  await show('second');
  live.forget(session);
  await reading;
  assert.deepEqual(shown(), ['second']);
  live.forget(session);
  await live.prepareOutputs(session);
  await show('third');
  live.forget(session);
  assert.deepEqual(shown(), ['third']);
});

test('a large output is read in a separate step', async (t) => {
  const { live, session, show, shown } = await withOutputs(t);
  const large = 'x'.repeat(100_000);
  await show(large);
  live.forget(session);
  await live.prepareOutputs(session);
  assert.deepEqual(shown(), [large]);
});

test('a notebook is loaded again when its home comes back from another worker', async (t) => {
  const { live, notebooks, session } = await withOutputs(t);
  live.of(session);
  live.leaveTo((workspaceId, id) => workspaceId === WORKSPACE && id !== session.id);
  assert.ok(live.peek(session) !== undefined, 'it is at home here');
  live.leaveTo((workspaceId, id) => workspaceId === WORKSPACE && id === session.id);
  assert.equal(live.peek(session), undefined);
  const { updatedAt } = notebooks.read(WORKSPACE, session.id);
  const changed = { serialization: { cells: [{ cell_id: 'a', code: 'new' }] } };
  await notebooks.patch(WORKSPACE, session.id, changed, { expectedUpdatedAt: updatedAt, by: 'ada' });
  assert.deepEqual(
    live.of(session).document.serialization.cells.map(({ code }) => code),
    ['new'],
  );
});

test('outputs that were read ahead are not shown after another worker has made decisions about the notebook', async (t) => {
  const { live, open, session, show, shown } = await withOutputs(t);
  await show('first');
  live.forget(session);
  await live.prepareOutputs(session);
  live.leaveTo((_, id) => id === session.id);
  await show('second', open());
  assert.deepEqual(shown(), ['second']);
});

test('a notebook is loaded and observed only in its home', async (t) => {
  const { store, notebooks, session } = await withOutputs(t);
  const makeStream = (sessionId: SessionId) => new SessionStream({ sessionId });
  let isHere = false;
  const owns = (workspaceId: string, id: string) => isHere && workspaceId === WORKSPACE && id === session.id;
  const live = new LiveNotebooks({ store, notebooks, makeStream, owns });
  assert.throws(() => live.of(session), /The stream of a session begins only in the worker that is its home/);
  assert.throws(
    () => live.observe(session, () => undefined),
    /The stream of a session begins only in the worker that is its home/,
  );
  assert.equal(live.viewOf(session).cells.length, CELLS.length, 'what is saved can be read anywhere');
  isHere = true;
  const { stream } = live.of(session);
  isHere = false;
  assert.equal(live.of(session).stream, stream, 'it is in memory until it leaves');
});

test('a changed state of widgets is saved with the outputs, and is not an output of a cell', async (t) => {
  const { store, live, session, show, shown } = await withOutputs(t);
  const saved = () => widgetsOf(store, WORKSPACE, session.id);
  await show('first');
  assert.equal(saved(), undefined);
  const large = `[${'1,'.repeat(100_000)}1]`;
  for (const widgets of ['[1]', large]) {
    live.of(session).view.setWidgets(widgets);
    await show('second');
    assert.equal(saved(), widgets);
  }
  await show('third');
  assert.equal(saved(), large);
  live.forget(session);
  await live.prepareOutputs(session);
  assert.deepEqual(shown(), ['third']);
  live.of(session).view.setWidgets('[]');
  await show('fourth');
  assert.equal(saved(), undefined);
});

test('runs of a notebook come after the runs of a process whose clock was ahead', async (t) => {
  const { store, open, session } = await withOutputs(t);
  const aheadId = `${firstIdAt('run', Date.now() + 3_600_000)}${'z'.repeat(16)}`;
  store.write((tx) => tx.mark(sessionRuns, WORKSPACE, session.id, aheadId));
  await store.durable();
  assert.ok(newId('run') < aheadId, 'the clock is behind');
  open().of(session);
  const [one, two] = [newId<string>('run'), newId<string>('run')];
  assert.ok(aheadId < one && one < two);
});
