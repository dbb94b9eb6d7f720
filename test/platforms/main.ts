/** `npm run platforms`: installs the package on a new Debian with other versions of Node.js, and makes the main journeys there. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptOptions } from '#test/support/script-options.ts';
import { DebianTree, keptTree, TreeUnavailable, treesFolder } from './debian-tree.ts';
import { journeysOf, pack } from './journeys.ts';

const USAGE = `Makes a Debian 13 with debootstrap, and installs and uses the package there with several versions of Node.js.
It needs root, debootstrap and a network, and some 3 GB in ${treesFolder()}
(another folder with TROUPE_TEST_CACHE).

Usage: npm run platforms -- [options]

  --node LIST    the versions of Node.js; 22,24
  --short        only the last of these versions, on a Debian that is kept for the next time
  -h, --help     shows this text`;

const { node, short } = scriptOptions(USAGE, {
  node: { type: 'string', default: '22,24' },
  short: { type: 'boolean', default: false },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const folder = short ? keptTree() : `${keptTree()}-new-${process.pid}`;
const packages = mkdtempSync(join(tmpdir(), 'troupe-platforms-'));
try {
  if (process.getuid?.() !== 0) throw new TreeUnavailable('only root can make a Debian and enter it.');
  const tree = await DebianTree.make(folder);
  const packed = await pack(packages);
  const versions = node.split(',');
  for (const version of short ? versions.slice(-1) : versions) {
    say(`Debian 13, Node.js ${version}`);
    for await (const { journey, seen } of journeysOf(tree, packed, version)) say(`  ${journey}: ${seen}`);
  }
} catch (error) {
  if (!(error instanceof TreeUnavailable)) throw error;
  say(`Not tried: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(packages, { recursive: true, force: true });
  if (!short) rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
}
