// own process: it changes the user id of the process
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
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
    asOrdinaryUser(async () =>
      countFiles(await Folder.open(root, []), { maxEntries: 100, isLeftOut: () => false }),
    );
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
