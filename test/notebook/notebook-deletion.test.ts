import assert from 'node:assert/strict';
import test from 'node:test';
import { type AssetId, newId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import { NOTEBOOK, NotebookDeletion } from '#src/notebook/requests/notebook-deletion.ts';
import type { NotebookRequestContext } from '#src/notebook/requests/request-context.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { assetRecords } from '#storage/records/assets.ts';
import { blobRecords, blobUses } from '#storage/records/blobs.ts';
import { cellOutputRecords, notebookVersionContents, notebookVersions } from '#storage/records/notebooks.ts';
import { runIndex, runRecords } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import { addWorkspaces, rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testContext } from '#test/support/test-context.ts';

const HOME = 'ws_home' as WorkspaceId;
const ELSEWHERE = 'ws_elsewhere' as WorkspaceId;

function open(store: Store) {
  const removals = new Removals(store, (error) => assert.ifError(error));
  addWorkspaces(store, HOME, ELSEWHERE);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const actors = new ActorRuntime(store, rememberingLog().log);
  const runs = new RunRepository(store, actors, {
    isDeleted: (workspaceId, id) => removals.isPending({ kind: NOTEBOOK, workspaceId, home: id, id }),
  });
  const runDeletion = new RunDeletion(store, runs, removals);
  const deletion = new NotebookDeletion(
    testContext<NotebookRequestContext>({
      store,
      removals,
      notebooks,
      sessions: { erase: () => undefined },
      secrets: { erase: () => undefined },
      runDeletion,
      agents: () => ({ prepareDeletion: () => () => undefined }),
    }),
  );
  const keep = (notebookId: string, cellId: string, workspaceId = HOME) =>
    store.write((tx) =>
      tx.put(
        cellOutputRecords,
        { output: null, console: [], code: 'x', held: [] },
        workspaceId,
        notebookId,
        cellId,
      ),
    );
  const run = (notebookId: string, assets: number) => {
    const { runId } = runs.begin({
      workspaceId: HOME,
      sessionId: notebookId as SessionId,
      kind: 'notebook',
      input: {},
    });
    const asset = { mimetype: 'text/plain', sha256: 'a', bytes: Buffer.from('x') };
    runs.finish(HOME, runId, {
      status: 'completed',
      error: null,
      output: { stored: true, parts: [] },
      assets: new Map(Array.from({ length: assets }, () => [newId<AssetId>('asset'), asset] as const)),
    });
    return runId;
  };
  return { removals, notebooks, runs, deletion, keep, run };
}

/** Waits until nothing of the notebook is left. Returns how many turns of the event loop that took; each turn has one step. */
async function removed(store: Store, removals: Removals, id: string): Promise<number> {
  let turns = 0;
  for (; removals.isPending({ kind: NOTEBOOK, workspaceId: HOME, home: id, id }); turns++) {
    await new Promise(setImmediate);
    await store.durable();
  }
  removals[Symbol.dispose]();
  return turns;
}

test('deleting a notebook removes its earlier versions', async (t) => {
  const { store } = await temporaryStore(t);
  const { removals, notebooks, deletion } = open(store);
  const { id, updatedAt } = (await notebooks.create(HOME, {}, 'ada')).document;
  let expectedUpdatedAt = updatedAt;
  for (let i = 0; i < 50; i++) {
    const change = { expectedUpdatedAt, by: `user-${i}` };
    expectedUpdatedAt = (await notebooks.patch(HOME, id, { title: `Title ${i}` }, change)).updatedAt;
  }
  await store.durable();
  assert.equal([...store.listKeys(notebookVersionContents, HOME, [id], 1000)].length, 50);
  deletion.delete(HOME, id);
  await removed(store, removals, id);
  assert.deepEqual([...store.listKeys(notebookVersionContents, HOME, [], 1000)], []);
  assert.deepEqual([...store.listKeys(notebookVersions, HOME, [], 1000)], []);
});

test('deleting a notebook removes the outputs of all its present and earlier cells, and no other outputs', async (t) => {
  const { store } = await temporaryStore(t);
  const { removals, notebooks, deletion, keep } = open(store);
  const mine = (await notebooks.create(HOME, {})).document.id;
  const other = (await notebooks.create(HOME, {})).document.id;
  for (const cellId of ['c0', 'earlier', '\uffff', '😀', '🧮 sum', '\u{10ffff}']) keep(mine, cellId);
  keep(other, 'c0');
  keep(mine, 'c0', ELSEWHERE);
  await store.durable();
  keep(mine, 'not committed yet');
  deletion.delete(HOME, mine);
  await removed(store, removals, mine);
  const left = [HOME, ELSEWHERE].flatMap((workspaceId) =>
    [...store.listKeys(cellOutputRecords, workspaceId, [], 10)].map((ids) => [workspaceId, ...ids]),
  );
  assert.deepEqual(left, [
    [HOME, other, 'c0'],
    [ELSEWHERE, mine, 'c0'],
  ]);
});

test('the runs of a deleted notebook cannot be found any more, and are removed in small steps', async (t) => {
  const { store } = await temporaryStore(t);
  const { removals, notebooks, runs, deletion, run } = open(store);
  const mine = (await notebooks.create(HOME, {})).document.id;
  const other = (await notebooks.create(HOME, {})).document.id;
  const gone = [run(mine, 250), run(mine, 0), run(mine, 3)];
  const kept = run(other, 1);
  await store.durable();
  deletion.delete(HOME, mine);
  const nothing = Buffer.from('{"items":[],"nextCursor":null}');
  for (const runId of gone) {
    assert.throws(() => runs.reader.json(HOME, runId), { code: 'not_found' });
    assert.equal(runs.reader.exists(HOME, runId), false);
  }
  const lists = Promise.all([
    runs.reader.list(HOME, { sessionId: mine, limit: 10 }),
    runs.reader.list(HOME, { limit: 10 }),
  ]);
  assert.ok((await removed(store, removals, mine)) > 3, 'not all in one turn');
  const [ofMine, ofAll] = (await lists).map((page) => Buffer.from(page));
  assert.deepEqual(ofMine, nothing);
  assert.deepEqual(
    JSON.parse(ofAll!.toString()).items.map(({ id }: { id: string }) => id),
    [kept],
  );
  const ids = (kind: typeof runRecords | typeof runIndex | typeof assetRecords) =>
    [...store.listKeys(kind, HOME, [], 1000)].map(([runId]) => runId);
  assert.deepEqual([ids(runRecords), ids(runIndex), ids(assetRecords)], [[kept], [kept], [kept]]);
});

test('a removal noted during the last commit of another removal is also carried out', async (t) => {
  const { store } = await temporaryStore(t);
  const { removals, notebooks, deletion, keep } = open(store);
  const made = await Promise.all(Array.from({ length: 20 }, () => notebooks.create(HOME, {})));
  for (const { document } of made) keep(document.id, 'c0');
  await store.durable();
  for (const { document } of made) {
    deletion.delete(HOME, document.id);
    await new Promise(setImmediate);
  }
  while (
    made.some(({ document }) =>
      removals.isPending({ kind: NOTEBOOK, workspaceId: HOME, home: document.id, id: document.id }),
    )
  ) {
    await new Promise(setImmediate);
    await store.durable();
  }
  removals[Symbol.dispose]();
  assert.deepEqual([...store.listKeys(cellOutputRecords, HOME, [], 100)], []);
  for (const kind of [blobRecords, blobUses]) assert.deepEqual([...store.listKeys(kind, HOME, [], 10)], []);
});
