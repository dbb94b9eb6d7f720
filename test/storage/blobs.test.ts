import assert from 'node:assert/strict';
import test from 'node:test';
import { assetRecords, putAsset, readAsset, removeAsset } from '#storage/assets.ts';
import { blobRecords, blobUses } from '#storage/blobs.ts';
import { DamagedRecord, defineRecord } from '#storage/codec.ts';
import { temporaryStore } from '#test/support/temporary-store.ts';

const bytes = Uint8Array.from([1, 2, 3]);
const asset = { mimetype: 'image/png', sha256: 'abc', bytes };

test('equal assets of a workspace have their bytes once, until the last of them is removed', async (t) => {
  const { store } = await temporaryStore(t);
  const blobs = async () => {
    await store.durable();
    return [...store.listKeys(blobRecords, 'ws_a', [], 10)].length;
  };
  // In one turn as in several: what is not committed counts as well.
  store.write((tx) => putAsset(tx, asset, 'ws_a', 'run_1', 'one'));
  store.write((tx) => putAsset(tx, asset, 'ws_a', 'run_2', 'two'));
  store.write((tx) => putAsset(tx, asset, 'ws_b', 'run_1', 'one'));
  assert.equal(store.get(blobUses, 'ws_a', 'abc'), 2);
  assert.equal(await blobs(), 1);
  const remove = (runId: string, assetId: string) =>
    store.write((tx) => removeAsset(tx, 'ws_a', runId, assetId));
  remove('run_1', 'one');
  remove('run_1', 'one');
  assert.deepEqual(readAsset(store, 'ws_a', 'run_2', 'two'), asset);
  assert.equal(readAsset(store, 'ws_a', 'run_1', 'one'), undefined);
  remove('run_2', 'two');
  assert.equal(await blobs(), 0);
  assert.equal(store.get(blobUses, 'ws_a', 'abc'), undefined);
  assert.deepEqual(readAsset(store, 'ws_b', 'run_1', 'one'), asset);
});

test('an asset of an earlier release has its bytes, and one whose bytes are lost is damaged', async (t) => {
  const { store } = await temporaryStore(t);
  const before = defineRecord<object>('asset', 1);
  store.write((tx) => tx.put(before, asset, 'ws_a', 'run_1', 'one'));
  assert.deepEqual(readAsset(store, 'ws_a', 'run_1', 'one'), asset);
  store.write((tx) => {
    removeAsset(tx, 'ws_a', 'run_1', 'one');
    tx.put(assetRecords, { mimetype: 'image/png', sha256: 'abc' }, 'ws_a', 'run_1', 'two');
  });
  assert.throws(() => readAsset(store, 'ws_a', 'run_1', 'two'), DamagedRecord);
});
