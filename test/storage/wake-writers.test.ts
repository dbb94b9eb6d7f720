import assert from 'node:assert/strict';
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LOCK_FILE } from '#storage/disk/store-folder.ts';
import { loadWakeWriters } from '#storage/disk/wake-writers.ts';
import { eventually } from '#test/support/processes.ts';
import { sharedThings } from '#test/support/store/shared-store-process.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

/** Where LMDB's write lock is in its lock file: after the reader's lock, on the next cache line. */
const WRITE_LOCK = 64;
const SOMEBODY = 1;
const HAS_WAITERS = 0x80000000;

test('a writer whose wake-up died with another process continues when that process has ended', async (t) => {
  const { store, path } = await temporaryStore(t);
  const lock = openSync(join(path, LOCK_FILE), 'r+');
  t.after(() => closeSync(lock));
  const word = Buffer.alloc(4);
  const setLock = (value: number) => {
    word.writeUInt32LE(value);
    writeSync(lock, word, 0, word.length, WRITE_LOCK);
  };
  const readLock = () => {
    readSync(lock, word, 0, word.length, WRITE_LOCK);
    return word.readUInt32LE();
  };

  setLock(SOMEBODY);
  store.write((tx) => tx.put(sharedThings, Buffer.from('a'), 'ws_1', 'a'));
  const durable = store.durable();
  await eventually('the writer waits', () => readLock() === (SOMEBODY | HAS_WAITERS) >>> 0);
  // The lock is free, and no process is left that would wake the writer.
  setLock(0);
  await nextTurn();
  assert.equal(readLock(), 0, 'the writer sleeps');

  const wakeWriters = await loadWakeWriters(path);
  wakeWriters();
  await durable;
  assert.equal(store.get(sharedThings, 'ws_1', 'a')?.byteLength, 1);
});

test('waking the writers of a missing store does nothing', async () => {
  const wakeWriters = await loadWakeWriters('/nonexistent');
  wakeWriters();
});
