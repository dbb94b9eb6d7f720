/** Runs with megabytes of input: they are stored and read like others, and their input is neither encoded nor parsed again. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { Store } from '#storage/store.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const SESSION = 'nb_1' as SessionId;
const INPUT = { type: 'cells', cells: [{ cellId: 'a', code: '# "ä" ,"output":null\n'.repeat(50_000) }] };
const OUTPUT = { stored: true, parts: [{ type: 'warning', code: 'ä', message: ',"input":' }] };

function openRuns(store: Store) {
  const runtime = new ActorRuntime(store, rememberingLog().log);
  return { runtime, runs: new RunRepository(store, runtime) };
}
const shown = (runs: RunRepository, id: RunId) =>
  JSON.parse(Buffer.from(runs.reader.json(WORKSPACE, id)).toString());

async function listed(runs: RunRepository, include: 'output' | 'none') {
  const page = await runs.reader.list(WORKSPACE, { limit: 10, include });
  return JSON.parse(Buffer.from(page).toString()).items[0];
}

async function begun(t: TestContext) {
  const stores = await temporaryStore(t);
  const { runs, runtime } = openRuns(stores.store);
  const { runId: id } = runs.begin({
    workspaceId: WORKSPACE,
    sessionId: SESSION,
    kind: 'notebook',
    input: INPUT,
    createdBy: 'ada',
  });
  await stores.store.durable();
  return { ...stores, runs, runtime, id };
}

test('a large input is in the run while it runs and after its end', async (t) => {
  const { runs, id } = await begun(t);
  assert.deepEqual(shown(runs, id).input, INPUT);
  runs.finish(WORKSPACE, id, { status: 'completed', error: null, output: OUTPUT, assets: new Map() });
  const { input, output, status } = shown(runs, id);
  assert.deepEqual([input, output, status], [INPUT, OUTPUT, 'completed']);
});

test('a list without outputs omits a large input as well, and nothing else', async (t) => {
  const { runs, id, store } = await begun(t);
  assert.deepEqual(await listed(runs, 'none'), { ...shown(runs, id), outputOmitted: true });
  runs.finish(WORKSPACE, id, { status: 'completed', error: null, output: OUTPUT, assets: new Map() });
  await store.durable();
  assert.deepEqual(await listed(runs, 'output'), shown(runs, id));
  assert.deepEqual(await listed(runs, 'none'), { ...shown(runs, id), output: null, outputOmitted: true });
});

test('the newest run of a session is found without reading its large input', async (t) => {
  const { runs, id } = await begun(t);
  const error = { code: 'cell_failed' as const, message: ',"input":"ä"' };
  runs.finish(WORKSPACE, id, { status: 'failed', error, output: OUTPUT, assets: new Map() });
  assert.deepEqual(runs.reader.latest(WORKSPACE, SESSION), { ...shown(runs, id), input: null, output: null });
});

test('a run with a large input that an earlier server process left is stale, and can be cancelled', async (t) => {
  const { runtime, id, reopen } = await begun(t);
  runtime.stopAll();
  const after = openRuns(await reopen()).runs;
  assert.deepEqual([shown(after, id).stale, shown(after, id).input], [true, INPUT]);
  assert.equal(after.reader.latest(WORKSPACE, SESSION)?.stale, true);
  after.cancel(WORKSPACE, id, assert.fail);
  assert.deepEqual([shown(after, id).status, shown(after, id).input], ['cancelled', INPUT]);
  assert.equal(after.reader.latest(WORKSPACE, SESSION)?.input, null);
});
