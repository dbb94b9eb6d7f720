import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { DamagedRecord, defineRecord } from '#storage/codec.ts';
import { assetRecords, putAsset, readAsset, removeAsset } from '#storage/records/assets.ts';
import { blobRecords, blobUses } from '#storage/records/blobs.ts';
import type { Store } from '#storage/store.ts';
import { damage } from '#test/support/store/damage.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const bytes = Uint8Array.from([1, 2, 3]);
const asset = { mimetype: 'image/png', sha256: 'abc', bytes };

test('equal assets of a notebook are stored once, until the last of them is removed', async (t) => {
  const { store } = await temporaryStore(t);
  const blobs = async () => {
    await store.durable();
    return [...store.listKeys(blobRecords, 'ws_a', [], 10)].length;
  };
  // Uses count the same in one turn as in several, because uncommitted uses count as well.
  store.write((tx) => putAsset(tx, asset, 'nb_1', 'ws_a', 'run_1', 'one'));
  store.write((tx) => putAsset(tx, asset, 'nb_1', 'ws_a', 'run_2', 'two'));
  store.write((tx) => putAsset(tx, asset, 'nb_1', 'ws_b', 'run_1', 'one'));
  assert.equal(store.get(blobUses, 'ws_a', 'nb_1', 'abc'), 2);
  assert.equal(await blobs(), 1);
  const remove = (runId: string, assetId: string) =>
    store.write((tx) => removeAsset(tx, 'ws_a', runId, assetId));
  remove('run_1', 'one');
  remove('run_1', 'one');
  assert.deepEqual(readAsset(store, 'ws_a', 'run_2', 'two'), asset);
  assert.equal(readAsset(store, 'ws_a', 'run_1', 'one'), undefined);
  remove('run_2', 'two');
  assert.equal(await blobs(), 0);
  assert.equal(store.get(blobUses, 'ws_a', 'nb_1', 'abc'), undefined);
  assert.deepEqual(readAsset(store, 'ws_b', 'run_1', 'one'), asset);
});

test('an asset without bytes counts as damaged', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) =>
    tx.put(assetRecords, { mimetype: 'image/png', sha256: 'abc', sessionId: 'nb_1' }, 'ws_a', 'run_1', 'two'),
  );
  assert.throws(() => readAsset(store, 'ws_a', 'run_1', 'two'), DamagedRecord);
});

test('two workers store and remove equal outputs of two notebooks at once without affecting each other', async (t) => {
  const { path, store } = await temporaryStore(t);
  const other = await sharedStore(t, path);
  const both = async (decide: (home: Store, sessionId: string, runId: string) => void) => {
    for (const home of [store, other]) home.refresh();
    decide(store, 'nb_1', 'run_1');
    decide(other, 'nb_2', 'run_2');
    await Promise.all([store.durable(), other.durable()]);
    for (const home of [store, other]) home.refresh();
  };
  await both((home, sessionId, runId) =>
    home.write((tx) => {
      for (const id of ['one', 'two']) putAsset(tx, asset, sessionId, 'ws_a', runId, id);
    }),
  );
  await both((home, _, runId) => home.write((tx) => removeAsset(tx, 'ws_a', runId, 'one')));
  for (const runId of ['run_1', 'run_2'])
    assert.deepEqual(readAsset(store, 'ws_a', runId, 'two'), asset, 'one use is left');
  await both((home, _, runId) => home.write((tx) => removeAsset(tx, 'ws_a', runId, 'two')));
  for (const kind of [blobRecords, blobUses]) assert.deepEqual([...store.listKeys(kind, 'ws_a', [], 10)], []);
});

test('an asset whose record is damaged can be removed', async (t) => {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => putAsset(tx, { ...asset, mimetype: 'image/damaged' }, 'nb_1', 'ws_a', 'run_1', 'one'));
  await store.durable();
  damage(join(path, 'data.mdb'), 'image/damaged');
  store.write((tx) => removeAsset(tx, 'ws_a', 'run_1', 'one'));
  assert.equal(readAsset(store, 'ws_a', 'run_1', 'one'), undefined);
});

test('bytes with a damaged use count are kept, and can be used again', async (t) => {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => {
    for (const runId of ['run_1', 'run_2']) putAsset(tx, asset, 'nb_1', 'ws_a', runId, 'one');
    tx.put(defineRecord<unknown>('session-blob-uses', 1), 'a count', 'ws_a', 'nb_1', 'abc');
  });
  await store.durable();
  damage(join(path, 'data.mdb'), 'a count');
  assert.throws(() => store.get(blobUses, 'ws_a', 'nb_1', 'abc'), DamagedRecord);
  store.write((tx) => removeAsset(tx, 'ws_a', 'run_1', 'one'));
  store.write((tx) => putAsset(tx, asset, 'nb_1', 'ws_a', 'run_3', 'one'));
  for (const runId of ['run_2', 'run_3']) assert.deepEqual(readAsset(store, 'ws_a', runId, 'one'), asset);
});
