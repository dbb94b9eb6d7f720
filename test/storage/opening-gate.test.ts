import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { loadSharedFileLock } from '#src/base/os/file-lock.ts';
import { OpeningGate } from '#storage/disk/opening-gate.ts';
import { DATA_FILE } from '#storage/disk/store-folder.ts';
import { openStoreReader } from '#storage/open-store.ts';
import { eventually } from '#test/support/processes.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { sharedThings } from '#test/support/store/shared-store-process.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

/**
 * Returns the locks of a store, and descriptors of its directory and its data file that hold no
 * lock yet.
 */
async function locksOf(path: string) {
  const lock = await loadSharedFileLock();
  assert.ok(lock !== undefined);
  return { lock, directory: openSync(path, 'r'), file: openSync(join(path, DATA_FILE), 'r') };
}

const record = (id: string) => Buffer.from(id);

test('no commit is given to LMDB while another process opens the store', async (t) => {
  const { store, path } = await temporaryStore(t);
  const { lock, directory, file } = await locksOf(path);
  assert.ok(lock.own(directory) && lock.own(file));
  let isStored = false;
  store.write((tx) => tx.put(sharedThings, record('a'), 'ws_1', 'a'));
  const stored = store.durable()?.then(() => {
    isStored = true;
  });
  // A write without a gate is committed in between, although it was requested later.
  await commitWithoutGate(t, path);
  assert.equal(isStored, false);
  store.refresh();
  const committed = [...store.list(sharedThings, 'ws_1', [], { limit: 10 })].map(({ id }) => id);
  assert.deepEqual(committed, ['past the gate']);
  lock.release(file);
  lock.release(directory);
  await stored;
  assert.equal(isStored, true);
});

test('a process opens the store only when the commits in progress have ended, and no commit begins during the opening', async (t) => {
  const { store, path } = await temporaryStore(t);
  const { lock, directory, file } = await locksOf(path);
  lock.share(file); // this is what a commit in progress does
  const opener = childScript(t, 'shared-store-process', path, 'put', 'b');
  // The opening process has locked the directory, and waits for the data file.
  await eventually('the gate is at that point', () => {
    if (!lock.share(directory)) return true;
    lock.release(directory);
    return false;
  });
  store.write((tx) => tx.put(sharedThings, record('a'), 'ws_1', 'a'));
  const stored = store.durable();
  assert.equal(lock.share(directory), false, 'who opens the store goes before those who begin to commit');
  lock.release(file);
  await stored;
  await assert.rejects(opener.line(), /ended/);
  store.refresh();
  assert.ok(store.has(sharedThings, 'ws_1', 'a') && store.has(sharedThings, 'ws_1', 'b'));
});

test('processes that open the store repeatedly lose no commits of others, and get their turn', async (t) => {
  const { store, path } = await temporaryStore(t);
  let isOver = false;
  const opening = (async () => {
    for (let n = 0; n < 20; n++) {
      await using _reader = await openStoreReader(join(path));
    }
    isOver = true;
  })();
  const ids: string[] = [];
  while (!isOver) {
    const id = String(ids.length);
    store.write((tx) => tx.put(sharedThings, record(id), 'ws_1', id));
    await store.durable();
    ids.push(id);
  }
  await opening;
  store.refresh();
  assert.deepEqual(
    ids.filter((id) => !store.has(sharedThings, 'ws_1', id)),
    [],
  );
});

test('a process does not open the store while a commit is in progress, however long that takes', async (t) => {
  const { store, path } = await temporaryStore(t);
  const { lock, file } = await locksOf(path);
  lock.share(file); // this is what a commit in progress does
  let isOpened = false;
  const open = () => {
    isOpened = true;
  };
  await assert.rejects(
    OpeningGate.open(path, open, 0),
    /another process has been writing to it for too long/,
  );
  assert.equal(isOpened, false);
  store.write((tx) => tx.put(sharedThings, record('a'), 'ws_1', 'a'));
  await store.durable(); // the process that has given up keeps no lock
  lock.release(file);
  const { gate } = await OpeningGate.open(path, open, 0);
  gate[Symbol.dispose]();
  assert.equal(isOpened, true);
});

test('a store that cannot be opened leaves its gate open', async (t) => {
  const { store, path } = await temporaryStore(t);
  const fail = () => {
    throw new Error('no memory');
  };
  await assert.rejects(OpeningGate.open(path, fail), /no memory/);
  store.write((tx) => tx.put(sharedThings, record('a'), 'ws_1', 'a'));
  await store.durable();
  assert.ok(store.has(sharedThings, 'ws_1', 'a'));
});

/** Commits a record like a program that does not use the gate. */
async function commitWithoutGate(t: TestContext, path: string): Promise<void> {
  const script = childScript(t, 'ungated-writer', path);
  assert.equal(await script.line(), 'committed');
  await script.kill();
}
