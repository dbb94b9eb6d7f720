import assert from 'node:assert/strict';
import test from 'node:test';
import { defineRecord, type RecordKind } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { convert, migrationCursor } from '#storage/migrations/conversion.ts';
import { partBySession } from '#storage/migrations/part-by-session.ts';
import { openStore } from '#storage/open-store.ts';
import { assetRecords, readAsset, removeAsset } from '#storage/records/assets.ts';
import { blobRecords, blobUses } from '#storage/records/blobs.ts';
import { userWorkspaces } from '#storage/records/identity.ts';
import { cellOutputRecords } from '#storage/records/notebooks.ts';
import { runIndex, trimmedRuns } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const FORMAT_4 = { version: 4, migrations: [() => [], () => [], () => []] };
const oldAssets = defineRecord<object>('asset', 2);
const oldBlobs = defineRecord<Uint8Array>('blob', 1);
const oldUses = defineRecord<number>('blob-uses', 1);
const oldTrimmed = defineRecord<string>('trimmed-run', 1);
const oldRemovals = defineRecord<null>('removal', 1);
const ENTRY = { environmentId: null, status: 'completed', createdAt: '' };
const bytesOf = (sha256: string) => Buffer.from(`bytes of ${sha256}`);

function putRun(tx: Transaction, runId: string, kind: 'notebook' | 'agent', sessionId: string): void {
  tx.put(runIndex, { ...ENTRY, kind, sessionId }, 'ws_1', runId);
}

function putOldAsset(tx: Transaction, runId: string, assetId: string, sha256: string): void {
  tx.put(oldAssets, { mimetype: 'text/plain', sha256 }, 'ws_1', runId, assetId);
}

/** Two notebooks that show the same output, a notebook that is deleted, and a deleted run with assets. */
function writeOld(store: Store): void {
  store.write((tx) => {
    tx.put(userWorkspaces, null, SYSTEM, 'ada', 'ws_1');
    for (const [sha256, uses] of [
      ['a', 4],
      ['b', 1],
      ['c', 1],
    ] as const) {
      tx.put(oldBlobs, bytesOf(sha256), 'ws_1', sha256);
      tx.put(oldUses, uses, 'ws_1', sha256);
    }
    putRun(tx, 'run_1', 'notebook', 'nb_1');
    putOldAsset(tx, 'run_1', 'asset_1', 'a');
    putOldAsset(tx, 'run_1', 'asset_2', 'a');
    putRun(tx, 'run_2', 'notebook', 'nb_2');
    putOldAsset(tx, 'run_2', 'asset_1', 'a');
    putRun(tx, 'run_3', 'agent', 'conv_1');
    putOldAsset(tx, 'run_3', 'asset_1', 'b');
    putOldAsset(tx, 'run_gone', 'asset_1', 'c');
    tx.put(
      assetRecords,
      { mimetype: '', sha256: 'd', bytes: bytesOf('d') } as never,
      'ws_1',
      'run_1',
      'asset_3',
    );
    const held = [{ entry: 0, type: 'text/plain', sha256: 'a', urlStart: null, isJson: false }];
    tx.put(cellOutputRecords, { output: null, console: [], code: '', held }, 'ws_1', 'nb_1', 'cell');
    tx.put(oldTrimmed, 'run_2', 'ws_1');
    for (const [kind, id] of [
      ['notebook', 'nb_9'],
      ['conversation', 'conv_9'],
      ['run', 'run_2'],
      ['run', 'run_gone'],
      ['workspace', 'ws_1'],
    ] as const)
      tx.put(oldRemovals, null, SYSTEM, 'ws_1', kind, id);
  });
}

/** Converts like a release whose passes differ from those of the release that was interrupted. */
async function convertFromFirst(store: Store): Promise<void> {
  store.write((tx) => tx.remove(migrationCursor, SYSTEM));
  await store.durable();
  await convert({ store, from: 4, migration: partBySession, onProgress() {} });
}

/** Has a store of format 4 converted, and checks that nothing of the old keys is left. */
function checkConverted(store: Store): void {
  const keys = (kind: RecordKind<unknown>) => [...store.listKeys(kind, 'ws_1', [], 100)];
  const uses = keys(blobUses).map((key) => [...key, store.get(blobUses, 'ws_1', ...key)]);
  assert.deepEqual(uses, [
    ['conv_1', 'b', 1],
    ['nb_1', 'a', 3],
    ['nb_2', 'a', 1],
  ]);
  assert.equal(keys(blobRecords).length, 3);
  for (const kind of [oldBlobs, oldUses]) assert.deepEqual(keys(kind), [], kind.name);
  for (const [runId, assetId, sha256] of [
    ['run_1', 'asset_1', 'a'],
    ['run_2', 'asset_1', 'a'],
    ['run_3', 'asset_1', 'b'],
    ['run_1', 'asset_3', 'd'],
  ] as const)
    assert.deepEqual(Buffer.from(readAsset(store, 'ws_1', runId, assetId)!.bytes), bytesOf(sha256), runId);
  assert.equal(store.get(assetRecords, 'ws_1', 'run_gone', 'asset_1'), undefined);
  assert.deepEqual(keys(trimmedRuns), [
    ['notebook', 'nb_1'],
    ['notebook', 'nb_2'],
  ]);
  assert.equal(store.get(trimmedRuns, 'ws_1', 'notebook', 'nb_1'), 'run_1');
  const removals = new Removals(store, assert.ifError);
  const isPending = (kind: string, home: string | undefined, id: string) =>
    removals.isPending({ kind, workspaceId: 'ws_1', home, id });
  assert.deepEqual(
    [
      isPending('notebook', 'nb_9', 'nb_9'),
      isPending('conversation', 'conv_9', 'conv_9'),
      isPending('run', 'nb_2', 'run_2'),
      isPending('workspace', undefined, 'ws_1'),
    ],
    [true, true, true, true],
  );
  assert.equal([...store.listKeys(oldRemovals, SYSTEM, [], 10)].length, 4);
}

test('lists that notebooks and conversations shared in an older store are split between them', async (t) => {
  const path = temporaryDirectory(t);
  const old = await openStore(path, assert.fail, FORMAT_4);
  writeOld(old);
  await old[Symbol.asyncDispose]();
  const store = await openStore(path, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  checkConverted(store);
  store.write((tx) => {
    for (const id of ['asset_1', 'asset_2']) removeAsset(tx, 'ws_1', 'run_1', id);
  });
  assert.equal(store.get(blobUses, 'ws_1', 'nb_1', 'a'), 1, 'its cell shows it still');
});

test('a conversion that a crash interrupted counts no use twice', async (t) => {
  const path = temporaryDirectory(t);
  const store = await openStore(path, assert.fail, FORMAT_4);
  t.after(() => store[Symbol.asyncDispose]());
  writeOld(store);
  await store.durable();
  // The state after a crash between two blobs: the first one has moved.
  await convertFromFirst(store);
  store.write((tx) => {
    tx.put(oldBlobs, bytesOf('b'), 'ws_1', 'b');
    tx.put(oldUses, 1, 'ws_1', 'b');
    tx.remove(blobRecords, 'ws_1', 'conv_1', 'b');
    tx.remove(blobUses, 'ws_1', 'conv_1', 'b');
  });
  await store.durable();
  await convertFromFirst(store);
  checkConverted(store);
});

test('large outputs are converted in commits of a bounded size, however many notebooks show them', async (t) => {
  const commitsFor = async (bytes: number) => {
    const store = await openStore(temporaryDirectory(t), assert.fail, FORMAT_4);
    t.after(() => store[Symbol.asyncDispose]());
    store.write((tx) => {
      tx.put(userWorkspaces, null, SYSTEM, 'ada', 'ws_1');
      tx.put(oldBlobs, Buffer.alloc(bytes), 'ws_1', 'a');
      for (const n of [1, 2, 3, 4]) {
        putRun(tx, `run_${n}`, 'notebook', `nb_${n}`);
        putOldAsset(tx, `run_${n}`, 'asset_1', 'a');
        const inlined = { mimetype: '', sha256: 'd', bytes: Buffer.alloc(bytes) };
        tx.put(assetRecords, inlined as never, 'ws_1', `run_${n}`, 'asset_2');
      }
    });
    await store.durable();
    let commits = 0;
    store.onFlushed(() => commits++);
    await convertFromFirst(store);
    return commits;
  };
  const [small, large] = [await commitsFor(1), await commitsFor(5 * 1024 * 1024)];
  assert.ok(large >= small + 3, `${large} commits in place of ${small}`);
});
