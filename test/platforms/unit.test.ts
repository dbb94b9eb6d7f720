// tier: whole, because it installs the package on a Debian 13, boots that and starts the unit
/**
 * The commands of docs/operating.md on a Debian 13 that was booted with systemd: the unit of `deploy/` has to start there with
 * kernels that are fully confined. Skipped where the Debian cannot be had or booted, because its mirrors are no part of the project.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { BOOT_PACKAGES, BootedDebian } from './booted-debian.ts';
import { DebianTree, keptTree, TreeUnavailable } from './debian-tree.ts';
import { pack } from './journeys.ts';

const NODE = '24';

/** Returns the first block of shell commands of a section of the guide. */
function commandsOf(section: string): string {
  const guide = readFileSync('docs/operating.md', 'utf8');
  const from = guide.indexOf(`\n### ${section}\n`);
  assert.notEqual(from, -1, section);
  const [, block] = /^```sh\n(.*?)^```$/ms.exec(guide.slice(from)) ?? [];
  assert.ok(block, section);
  return block;
}

/** Returns the block of the guide that makes the user of the server and its folders. */
function commandsForUser(): string {
  const [block] = /^useradd [^`]*/m.exec(readFileSync('docs/operating.md', 'utf8')) ?? [];
  assert.ok(block);
  return block;
}

const SHELL_FUNCTION = `troupe() { (cd /etc/troupe && runuser -u troupe -- /usr/local/bin/troupe "$@"); }`;
const NOTEBOOK = `import marimo
app = marimo.App()
@app.cell
def _():
    print(6 * 7)
    return
`;

test('on a booted Debian 13 the unit starts as the guide says, with kernels that are fully confined, and stops', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can make a Debian and boot it.');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-booted-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  try {
    const kept = await DebianTree.make(`${keptTree()}-booted`, { packages: BOOT_PACKAGES });
    await kept.withNode(NODE);
    const place = join(folder, 'debian');
    execFileSync('cp', ['-a', kept.folder, place]);
    const tree = await DebianTree.make(place);
    await install(tree, folder);
    t.diagnostic('the release is installed');
    await using debian = await BootedDebian.boot(place);
    t.diagnostic((await debian.run('systemctl --version | head -1')).output.trim());
    const started = await debian.run(commandsOf('The service').replace(/^troupe doctor$/m, ''));
    const { output: log } = await debian.run('journalctl --unit troupe --no-pager --output cat');
    assert.equal(started.code, 0, `${started.output}\n${log}`);

    const { output } = await debian.run(`${SHELL_FUNCTION}\ntroupe doctor --json`);
    const { findings } = JSON.parse(output.slice(output.indexOf('{'))) as {
      readonly findings: readonly {
        readonly check: string;
        readonly status: string;
        readonly detail: string;
      }[];
    };
    const found = new Map(findings.map((finding) => [finding.check, finding]));
    assert.match(found.get('confinement')?.detail ?? '', /^full: .* \(found by the running server at /);
    assert.equal(found.get('kernels')?.status, 'ok');
    t.diagnostic(found.get('confinement')!.detail);

    mkdirSync(join(place, 'srv/notebooks'));
    writeFileSync(join(place, 'srv/notebooks/answer.py'), NOTEBOOK);
    const run = await debian.run(
      `cd /etc/troupe && runuser -u troupe -- /usr/local/bin/troupe run /srv/notebooks/answer.py`,
    );
    assert.match(run.output, /^.*\b42\b/m);
    assert.equal(run.code, 0, run.output);

    const stopped = await debian.run(
      'systemctl stop troupe; systemctl show --property Result --value troupe',
    );
    assert.deepEqual(stopped, { code: 0, output: 'success\n' });
  } catch (error) {
    if (!(error instanceof TreeUnavailable)) throw error;
    return t.skip(error.message);
  }
});

/** Carries out the commands of the guide that need no running system. */
async function install(tree: DebianTree, folder: string): Promise<void> {
  const programs = join('/opt', `node-${NODE}`, 'node_modules');
  for (const [name, target] of [
    ['node', 'node/bin/node'],
    ['npm', 'npm/bin/npm-cli.js'],
  ] as const)
    symlinkSync(join(programs, target), join(tree.folder, 'usr/local/bin', name));
  const packed = await pack(folder);
  copyFileSync(packed, join(tree.folder, 'root/troupe-1.0.0.tgz'));
  const script = [commandsForUser(), commandsOf('A release'), commandsOf('Settings')].join('\n');
  await tree.run(['bash', '-euc', script], { folder: '/root', path: [], user: 0 });
}
