// own process: it changes the user id of the process
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { countFiles } from '#src/workspace/files/file-count.ts';
import { Folder } from '#src/workspace/files/folder.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const NOBODY = 65_534;

/** Runs `act` as an ordinary user, because root may read every file. */
async function asOrdinaryUser<T>(act: () => Promise<T>): Promise<T> {
  const { seteuid, geteuid } = process;
  if (seteuid === undefined || geteuid?.() !== 0) return act();
  seteuid(NOBODY);
  try {
    return await act();
  } finally {
    seteuid(0);
  }
}

test('a folder that cannot be read makes a count incomplete, so hiding files does not evade a quota', async (t) => {
  const root = temporaryDirectory(t);
  const hidden = join(root, 'hidden');
  mkdirSync(join(root, 'seen'));
  mkdirSync(hidden);
  for (const folder of ['seen', 'hidden']) writeFileSync(join(root, folder, 'file'), Buffer.alloc(8192));
  if (process.geteuid?.() === 0) for (const path of [root, hidden]) chownSync(path, NOBODY, NOBODY);
  const count = () =>
    asOrdinaryUser(async () => countFiles(await Folder.open(root, []), 100, () => undefined));
  const all = await count();
  assert.deepEqual([all.entries, all.isComplete], [4, true]);
  for (const mode of [0o000, 0o300]) {
    chmodSync(hidden, mode);
    const { entries, isComplete } = await count();
    assert.deepEqual([entries, isComplete], [3, false], mode.toString(8));
  }
  chmodSync(hidden, 0o700);
  assert.deepEqual(await count(), all);
});

test('only the file of an upload is left out of a count, and nothing else that has its name', async (t) => {
  const root = temporaryDirectory(t);
  const name = '.troupe-upload-000000000000000000000000';
  writeFileSync(join(root, name), Buffer.alloc(8192));
  const { dev, ino } = statSync(join(root, name), { bigint: true });
  for (const folder of ['copy', 'folder']) mkdirSync(join(root, folder));
  writeFileSync(join(root, 'copy', name), Buffer.alloc(8192));
  mkdirSync(join(root, 'folder', name));
  writeFileSync(join(root, 'folder', name, 'hidden'), Buffer.alloc(8192));
  const uploadOf = (given: string) => (given === name ? { dev, ino } : undefined);
  const count = await countFiles(await Folder.open(root, []), 100, uploadOf);
  assert.deepEqual(
    [count.entries, count.bytes],
    [5, 2 * 8192],
    'two folders, the copy, and a folder with a file',
  );
});
