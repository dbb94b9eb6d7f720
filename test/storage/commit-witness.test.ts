import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { open } from 'lmdb';
import type { StoreKey } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';
import { sharedThings } from '#test/support/store/shared-store-process.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

/**
 * Opens the store at `path` as one of several processes. Returns it with the number of losses that
 * it has reported.
 */
async function openShared(t: TestContext, path: string) {
  const store = await sharedStore(t, path);
  const reported = { losses: 0 };
  store.onLostCommit(() => void reported.losses++);
  return { store, reported };
}

async function put(store: Store, id: string, text: string): Promise<void> {
  store.write((tx) => tx.put(sharedThings, Buffer.from(text), 'ws_1', id));
  await store.durable();
}

test('a confirmed commit that is missing from the store is reported once, before the next commit', async (t) => {
  const { path } = await temporaryStore(t);
  const { store, reported } = await openShared(t, path);
  const database = open<Buffer, StoreKey>({ path, encoding: 'binary' });
  t.after(() => database.close());
  const key: StoreKey = ['ws_1', sharedThings.name, 'a'];
  await put(store, 'a', 'first');
  const before = Buffer.from(database.getBinary(key)!);
  await put(store, 'a', 'second');
  // The commit is overwritten, as by a write transaction that began from the earlier state.
  await database.put(key, before);
  assert.equal(reported.losses, 0);
  await put(store, 'b', 'next');
  assert.equal(reported.losses, 1);
  await put(store, 'a', 'third');
  await put(store, 'a', 'fourth');
  assert.equal(reported.losses, 1);
});

test('records that other workers have changed again or removed are not mistaken for a lost commit', async (t) => {
  const { path } = await temporaryStore(t);
  const [first, second] = [await openShared(t, path), await openShared(t, path)];
  for (let n = 0; n < 5; n++) {
    await put(first.store, 'a', `of the first ${n}`);
    await put(second.store, 'a', `of the second ${n}`);
    if (n === 2) second.store.write((tx) => tx.remove(sharedThings, 'ws_1', 'a'));
    await second.store.durable();
    await new Promise((resolve) => first.store.decide(() => resolve(undefined)));
  }
  assert.deepEqual([first.reported.losses, second.reported.losses], [0, 0]);
});
