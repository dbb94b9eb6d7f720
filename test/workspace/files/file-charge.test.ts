/** The charge of one upload, apart from the quota: during the upload and after it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { blocksOf, Charge } from '#src/workspace/files/file-charge.ts';

const BLOCK = blocksOf(1);

/** Returns an account that has room for everything, and its charges. */
function open() {
  const account = { changed: { bytes: 0, entries: 0 }, held: { bytes: 0, entries: 0 } };
  const freed: number[] = [];
  const charge = () =>
    new Charge(account, async ({ bytes, entries, freedBytes }) => {
      account.held.bytes += bytes;
      account.held.entries += entries;
      freed.push(freedBytes);
    });
  return { account, charge, freed };
}

test('an upload that replaces a file changes the charge by the difference of their sizes, and counts no other file', async () => {
  const { account, charge, freed } = open();
  for (const [size, replaced, change] of [
    [BLOCK, BLOCK, 0],
    [3 * BLOCK, BLOCK - 1, 2 * BLOCK],
    [1, 5 * BLOCK, -4 * BLOCK],
  ] as const) {
    const before = account.changed.bytes;
    using upload = charge();
    await upload.file(replaced);
    await upload.bytes(size);
    assert.deepEqual(account.held, { bytes: blocksOf(size), entries: 0 });
    upload.settle(replaced);
    assert.equal(account.changed.bytes - before, change);
  }
  assert.deepEqual(freed, [BLOCK, BLOCK, 5 * BLOCK]);
  assert.deepEqual([account.changed.entries, account.held], [0, { bytes: 0, entries: 0 }]);
});

test('an upload that is given up leaves no charge', async () => {
  const { account, charge } = open();
  {
    using upload = charge();
    await upload.folder();
    await upload.file(undefined);
    await upload.bytes(2 * BLOCK);
    assert.deepEqual(account.held, { bytes: 2 * BLOCK, entries: 2 });
  }
  assert.deepEqual(account, { changed: { bytes: 0, entries: 0 }, held: { bytes: 0, entries: 0 } });
});
