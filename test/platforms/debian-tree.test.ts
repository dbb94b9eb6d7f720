import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import test from 'node:test';
import { DebianTree, TreeUnavailable } from './debian-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-tree-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const tree = join(folder, 'trees/debian');

/** Asserts that no tree can be made with the programs in `path`, and that nothing of one is left. */
async function assertUnavailable(path: string, reason: RegExp): Promise<void> {
  await assert.rejects(DebianTree.make(tree, 'trixie', path), (error) => {
    assert.ok(error instanceof TreeUnavailable);
    assert.match(error.message, reason);
    return true;
  });
  const trees = join(folder, 'trees');
  assert.deepEqual(existsSync(trees) ? readdirSync(trees) : [], []);
}

test('without debootstrap, a tree is unavailable and the reason names the package to install', async () => {
  await assertUnavailable(folder, /apt install debootstrap/);
});

test('when debootstrap fails, the reason has its last words and no half of a tree is left', async () => {
  const words = 'E: Failed getting release file http://deb.debian.org/debian/dists/trixie/Release';
  writeFileSync(join(folder, 'debootstrap'), `#!/bin/sh\necho '${words}'\nexit 1\n`, { mode: 0o755 });
  const path = [folder, '/usr/bin', '/bin'].join(delimiter);
  await assertUnavailable(path, /without a network: E: Failed getting release file/);
});
