import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { openSharedStore, openStore } from '#storage/open-store.ts';
import { type ChildScript, childScript } from '#test/support/store/child-script.ts';
import { sharedThings, VALUE_BYTES } from '#test/support/store/shared-store-process.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const SCRIPT = fileURLToPath(new URL('../support/store/shared-store-process.js', import.meta.url));

/** Has another process write a record, within this turn of the event loop. */
function putElsewhere(path: string, id: string): void {
  const { status, stderr } = spawnSync(process.execPath, [
    '--conditions=development',
    SCRIPT,
    path,
    'put',
    id,
  ]);
  assert.equal(status, 0, String(stderr));
}

test("a read sees another process's commits once the store is refreshed, and a range in progress does not change", async (t) => {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => tx.put(sharedThings, Buffer.from('a'), 'ws_1', 'a'));
  await store.durable();
  const range = store.list(sharedThings, 'ws_1', [], { limit: 10 });
  assert.equal(range.next().value?.id, 'a');
  putElsewhere(path, 'b');
  assert.equal(store.get(sharedThings, 'ws_1', 'b'), undefined, 'this turn reads as it was at its beginning');
  store.refresh();
  assert.equal(store.get(sharedThings, 'ws_1', 'b')?.byteLength, 10);
  assert.deepEqual(
    [...store.list(sharedThings, 'ws_1', [], { limit: 10 })].map(({ id }) => id),
    ['a', 'b'],
  );
  assert.equal(range.next().done, true);
});

test("a refresh loses none of this process's uncommitted writes", async (t) => {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => tx.put(sharedThings, Buffer.from('own'), 'ws_1', 'own'));
  putElsewhere(path, 'other');
  store.refresh();
  const { result, uncommitted } = store.observe(() => store.get(sharedThings, 'ws_1', 'own')?.byteLength);
  assert.equal(result, 3);
  await uncommitted;
  assert.equal(store.get(sharedThings, 'ws_1', 'other')?.byteLength, 10);
});

test('pages that a killed process was reading are reused once its reader is removed', async (t) => {
  const { store, path } = await temporaryStore(t);
  const rewrite = async () => {
    const before = store.extent().usedBytes;
    for (let n = 0; n < 30; n++) {
      store.write((tx) => tx.put(sharedThings, Buffer.alloc(200_000, String(n)), 'ws_1', 'a'));
      await store.durable();
    }
    return store.extent().usedBytes - before;
  };
  await rewrite();
  const reader = childScript(t, 'shared-store-process', path, 'read');
  assert.equal(await reader.line(), 'reading');
  await reader.kill();
  assert.ok((await rewrite()) > 4_000_000, 'its pages stay');
  store.dropDeadReaders();
  assert.ok((await rewrite()) < 1_000_000, 'they are used again');
});

test('removing dead readers of a closed store does nothing', async (t) => {
  const { store, path } = await temporaryStore(t);
  const other = await openSharedStore(path, assert.fail, async () => undefined);
  await other[Symbol.asyncDispose]();
  other.refresh();
  other.dropDeadReaders();
  assert.equal(store.get(sharedThings, 'ws_1', 'a'), undefined);
});

test('a store that was never prepared cannot be shared', async (t) => {
  const { path } = await temporaryStore(t);
  await assert.rejects(
    openSharedStore(join(path, 'another'), assert.fail, async () => undefined),
    /The store is migrated before a worker opens it/,
  );
});

test('two workers on a full disk wait for space, and neither loses an acknowledged write', {
  skip: noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 32);
  const path = join(disk, 'store');
  const store = await openStore(path, assert.fail);
  await store[Symbol.asyncDispose]();
  // The file is there before the workers, which would otherwise fill the disk alone, and wait for space that nobody frees.
  const ballast = fillDisk(disk, 20 * 1024 * 1024);
  const workers = [1, 2].map(() => childScript(t, 'shared-store-process', path, 'fill', '8'));
  const acknowledged: string[] = [];
  const read = async (worker: ChildScript) => {
    const line = await worker.line();
    if (line !== 'stalled') acknowledged.push(line);
    return line;
  };
  await Promise.all(
    workers.map(async (worker) => {
      while ((await read(worker)) !== 'stalled');
    }),
  );
  rmSync(ballast);
  for (const worker of workers) {
    let line = 'stalled';
    while (line === 'stalled') line = await read(worker); // each worker continues where it has waited
  }
  await Promise.all(workers.map((worker) => worker.kill()));
  const again = await openStore(path, assert.fail);
  t.after(() => again[Symbol.asyncDispose]());
  for (const id of acknowledged)
    assert.equal(again.get(sharedThings, 'ws_1', id)?.byteLength, VALUE_BYTES, id);
});
