/** `npm run platforms`: installs the package on a new Debian with other versions of Node.js, and makes the main journeys there. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/core/package-root.ts';
import { scriptOptions } from '#test/support/script-options.ts';
import { DebianTree, TreeUnavailable } from './debian-tree.ts';
import { journeysOf } from './journeys.ts';

const RELEASE = 'trixie';

const USAGE = `Makes a Debian 13 with debootstrap, and installs and uses the package there with several versions of Node.js.
It needs root, debootstrap and a network, and some 3 GB in .setup/platforms.

Usage: npm run platforms -- [options]

  --node LIST    the versions of Node.js; 22,24
  --short        only the last of these versions, on the Debian of an earlier run if there is one
  -h, --help     shows this text`;

const { node, short } = scriptOptions(USAGE, {
  node: { type: 'string', default: '22,24' },
  short: { type: 'boolean', default: false },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const folder = join(PACKAGE_ROOT, '.setup/platforms', `debian-${RELEASE}`);
const packages = mkdtempSync(join(tmpdir(), 'troupe-platforms-'));
try {
  if (process.getuid?.() !== 0) throw new TreeUnavailable('only root can make a Debian and enter it.');
  if (!short) rmSync(folder, { recursive: true, force: true });
  const tree = await DebianTree.make(folder, RELEASE);
  const { stdout } = await promisify(execFile)('npm', ['pack', '--json', '--pack-destination', packages], {
    cwd: PACKAGE_ROOT,
    maxBuffer: 2 ** 26,
  });
  const [{ filename }] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [{ filename: string }];
  const versions = node.split(',');
  for (const version of short ? versions.slice(-1) : versions) {
    say(`Debian 13, Node.js ${version}`);
    for await (const { journey, seen } of journeysOf(tree, join(packages, filename), version))
      say(`  ${journey}: ${seen}`);
  }
} catch (error) {
  if (!(error instanceof TreeUnavailable)) throw error;
  say(`Not tried: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(packages, { recursive: true, force: true });
}
