import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { writePrivateFile } from '#storage/private-file.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/small-disk.ts';

const PAGE_BYTES = 4096;

test('a private file that the disk has no room for stays what it was, and nothing else is left behind', {
  skip: noSmallDisk,
}, (t) => {
  const disk = smallDisk(t, 1);
  const path = join(disk, 'keyring.json');
  const before = 'the keys of before '.repeat(400);
  writePrivateFile(path, before);
  const spare = join(disk, 'spare');
  writeFileSync(spare, Buffer.alloc(PAGE_BYTES));
  fillDisk(disk);
  rmSync(spare); // one page: a write of more takes a part, without an error
  assert.throws(() => writePrivateFile(path, 'the keys of after '.repeat(400)), { code: 'ENOSPC' });
  assert.equal(readFileSync(path, 'utf8'), before);
  assert.deepEqual(readdirSync(disk).sort(), ['everything', 'keyring.json']);
});
