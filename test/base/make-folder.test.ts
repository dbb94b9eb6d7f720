import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { makeFolder } from '#src/base/os/make-folder.ts';

test('a folder is created with its parents, and an existing folder is kept', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'troupe-folder-'));
  t.after(() => rmSync(root, { recursive: true }));
  const path = join(root, 'a', 'b', 'c');
  makeFolder(path, 0o700);
  makeFolder(path, 0o700);
  assert.equal(statSync(path).mode & 0o777, 0o700);
  assert.equal(statSync(join(root, 'a')).mode & 0o777, 0o700);
  writeFileSync(join(root, 'file'), '');
  assert.throws(() => makeFolder(join(root, 'file')), { code: 'EEXIST' });
  assert.throws(() => makeFolder(join(root, 'file', 'a', 'b')), { code: 'ENOTDIR' });
});

test('a folder below /proc is an error, and does not hang', { skip: process.platform !== 'linux' }, () => {
  // Runs in a separate process, because a call that never returned would also block the time limit
  // of a test.
  const module = new URL('../../src/base/os/make-folder.js', import.meta.url).href;
  const script = `
    const { makeFolder } = await import(${JSON.stringify(module)});
    for (const path of ['/proc/no-such', '/proc/no-such/a/b'])
      try { makeFolder(path); } catch (error) { console.log(error.code); }`;
  const options = { encoding: 'utf8', timeout: 20_000, killSignal: 'SIGKILL' } as const;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], options);
  assert.equal(printed, 'ENOENT\nENOENT\n');
});
