import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const PAGE_BYTES = 4096;

test('a private file is unchanged when the disk is full, and its draft is removed', {
  skip: noSmallDisk,
}, (t) => {
  const disk = smallDisk(t, 1);
  const path = join(disk, 'keyring.json');
  const before = 'the keys of before '.repeat(400);
  writePrivateFile(path, before);
  const spare = join(disk, 'spare');
  writeFileSync(spare, Buffer.alloc(PAGE_BYTES));
  fillDisk(disk);
  rmSync(spare); // one page: a larger write takes only a part, without an error
  assert.throws(() => writePrivateFile(path, 'the keys of after '.repeat(400)), { code: 'ENOSPC' });
  assert.equal(readFileSync(path, 'utf8'), before);
  assert.deepEqual(readdirSync(disk).sort(), ['everything', 'keyring.json']);
});

test('the draft of a killed process is removed by the next writer of a private file', async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, 'keyring.json');
  const module = import.meta.resolve('#storage/disk/private-file.ts');
  const program = `import { writePrivateFile } from ${JSON.stringify(module)};
    for (;;) { writePrivateFile(${JSON.stringify(path)}, 'a key '.repeat(100_000)); process.stdout.write('.'); }`;
  const other = `${path}.before-rotation`;
  writeFileSync(other, 'a copy that somebody has made');
  for (let round = 0; round < 50 && readdirSync(directory).length < 3; round++) {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await exited;
  }
  assert.equal(readdirSync(directory).length, 3, 'a killed process has left a draft');
  writePrivateFile(path, 'the keys of now');
  assert.deepEqual(readdirSync(directory).sort(), ['keyring.json', 'keyring.json.before-rotation']);
  assert.equal(readFileSync(path, 'utf8'), 'the keys of now');
});
