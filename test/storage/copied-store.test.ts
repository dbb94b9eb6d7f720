import assert from 'node:assert/strict';
import { closeSync, copyFileSync, cpSync, openSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { DATA_FILE } from '#storage/disk/store-folder.ts';
import { openStore } from '#storage/open-store.ts';
import { sharedThings } from '#test/support/store/shared-store-process.ts';
import { temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';

const RECORDS = 400;

test('a copy of a store that was made page by page during writes is refused by name', async (t) => {
  const { store, path } = await temporaryStore(t);
  const write = async (round: number) => {
    store.write((tx) => {
      for (let n = 0; n < RECORDS; n++)
        tx.put(sharedThings, Buffer.alloc(900, `${round} ${n}`), 'ws_1', String(n).padStart(4, '0'));
    });
    await store.durable();
  };
  await write(0);
  // `cp` reads the head first, so the pages that it reads later belong to commits that the head
  // does not know.
  const early = join(temporaryDirectory(t), 'early');
  copyFileSync(join(path, DATA_FILE), early);
  for (let round = 1; round < 5; round++) await write(round);
  const copy = join(temporaryDirectory(t), 'store');
  cpSync(path, copy, { recursive: true });
  overwriteHead(early, join(copy, DATA_FILE));
  await assert.rejects(
    openStore(copy, assert.fail),
    /is damaged: it is a copy that was made while a server wrote it/,
  );
});

test('a copy of an idle store starts, and is checked once', async (t) => {
  const path = join(temporaryDirectory(t), 'store');
  const store = await openStore(path, assert.fail);
  store.write((tx) => tx.put(sharedThings, Buffer.from('a'), 'ws_1', 'a'));
  await store[Symbol.asyncDispose]();
  const copy = join(temporaryDirectory(t), 'store');
  cpSync(path, copy, { recursive: true });
  const again = await openStore(copy, assert.fail);
  assert.ok(again.has(sharedThings, 'ws_1', 'a'));
  await again[Symbol.asyncDispose]();
});

/** Replaces the two pages at the head of a file by those of another file. */
function overwriteHead(from: string, to: string): void {
  const head = Buffer.alloc(2 * 4096);
  const [source, target] = [openSync(from, 'r'), openSync(to, 'r+')];
  readSync(source, head, 0, head.byteLength, 0);
  writeSync(target, head, 0, head.byteLength, 0);
  closeSync(source);
  closeSync(target);
}
