import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import test from 'node:test';
import { DebianTree, removeLeftovers, TreeUnavailable } from './debian-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-tree-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const tree = join(folder, 'trees/debian');

/** Asserts that no tree can be made with the programs in `path`, and that no part of a tree is left. */
async function assertUnavailable(path: string, reason: RegExp, limitS = 60): Promise<void> {
  await assert.rejects(DebianTree.make(tree, { path, limitS }), (error) => {
    assert.ok(error instanceof TreeUnavailable);
    assert.match(error.message, reason);
    return true;
  });
  const trees = join(folder, 'trees');
  const left = existsSync(trees) ? readdirSync(trees) : [];
  assert.deepEqual(
    left.filter((name) => name !== 'debian-packages'),
    [],
  );
}

test('without debootstrap, a tree is unavailable and the reason names the package to install', async () => {
  await assertUnavailable(folder, /apt install debootstrap/);
});

/** Makes a debootstrap that consists of these lines, and returns the folders of programs with it. */
function debootstrapThat(lines: string): string {
  writeFileSync(join(folder, 'debootstrap'), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  return [folder, '/usr/bin', '/bin'].join(delimiter);
}

test('when debootstrap fails, the reason quotes its last words, and no partial tree remains', async () => {
  const words = 'E: Failed getting release file http://deb.debian.org/debian/dists/trixie/Release';
  const path = debootstrapThat(`echo '${words}'; exit 1`);
  await assertUnavailable(path, /without a network: E: Failed getting release file/);
});

test('a debootstrap that takes longer than its limit is stopped, and no partial tree remains', async () => {
  await assertUnavailable(debootstrapThat('sleep 3600'), /took longer than 0.2 seconds/, 0.2);
});

test('folders that a killed run has left are removed after a day, and others stay', () => {
  const place = join(folder, 'left');
  const yesterday = (Date.now() - 25 * 60 * 60_000) / 1000;
  for (const name of ['debian', 'debian.1', 'debian.2']) mkdirSync(join(place, name), { recursive: true });
  for (const name of ['debian', 'debian.1']) utimesSync(join(place, name), yesterday, yesterday);
  removeLeftovers(place, /\.\d+$/);
  assert.deepEqual(readdirSync(place), ['debian', 'debian.2']);
});
