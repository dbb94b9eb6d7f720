import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { confine } from '#src/faces/cli/run/confined-browser.ts';
import { printPdf, requireBrowser } from '#src/faces/cli/run/pdf.ts';
import { troupe } from './captured-terminal.ts';
import { Shell } from './troupe-process.ts';

const NOBODY = 65_534;
const shell = new Shell(test);
const programs = join(shell.cwd, 'programs');
const temporary = join(shell.cwd, 'temporary');
for (const folder of [programs, temporary]) mkdirSync(folder);
const usual = process.env.TMPDIR;
process.env.TMPDIR = temporary;
test.after(() => {
  if (usual === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = usual;
});

/**
 * Stands in for a browser: its PDF describes the machine as the browser sees it, and says whether it got the right
 * page.
 */
function standIn(script: string): string {
  const file = join(programs, 'chromium');
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return requireBrowser(programs);
}

const canShutIn =
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', '--net', 'true']).status === 0;

test('the browser sees the page and the system, but no files of the user and no network; without confinement nothing is printed', async () => {
  const browser = standIn(
    [
      'exec > /page/report.pdf 2>&1',
      'cat /page/report.html; echo',
      `ls / | tr '\\n' ' '; echo`,
      `cat ${shell.cwd}/secret; ls /home /root /var /etc/passwd`,
      'tail -n +3 /proc/net/dev; ls -d /proc/[0-9]*/root/home',
      'touch /usr/written /outside; echo x > "$0"',
      'env',
    ].join('\n'),
  );
  writeFileSync(join(shell.cwd, 'secret'), 'found it');
  const printing = printPdf(browser, '<p>the page</p>');
  if (!canShutIn) {
    await assert.rejects(printing, /cannot be kept from files and network/);
    return;
  }
  const seen = Buffer.from(await printing).toString('utf8');
  assert.match(seen, /^<p>the page<\/p>$/m);
  assert.doesNotMatch(seen, /found it|SERVICE_|troupe-page/);
  for (const place of ['/home', '/root', '/var', '/etc/passwd', `${shell.cwd}/secret`])
    assert.ok(
      seen.includes(`${place}'`) || seen.includes(`${place}: No such file`),
      `${place} is not there:\n${seen}`,
    );
  assert.doesNotMatch(seen, /eth0|wlan|enp/);
  assert.match(seen, /\/usr\/written.*Read-only/);
  assert.deepEqual(readdirSync(temporary), [], 'nothing is left');
});

/** Tries to leave a root by the way that is open to every process with capabilities, and prints its abilities. */
const ESCAPE = `import os
def attempt(name, do):
    try:
        print(name, do())
    except OSError as error:
        print(name, "refused", error.errno)
def leave():
    outside = os.open("/", os.O_RDONLY)
    os.mkdir("/tmp/inner")
    os.chroot("/tmp/inner")
    os.fchdir(outside)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return os.listdir("/")
attempt("chroot", leave)
attempt("old", lambda: os.listdir("/old"))
attempt("root", lambda: os.mkdir("/made"))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("namespace", libc.unshare(0x10000000))
print("mount", libc.mount(b"none", b"/tmp", b"tmpfs", 0, None))
print(open("/proc/self/status").read())
`;

test('the browser has no capabilities, cannot gain any, and cannot leave its root', {
  skip:
    canShutIn && existsSync('/usr/bin/python3')
      ? false
      : 'it needs user namespaces, and Python at /usr/bin/python3',
}, async () => {
  const browser = standIn(`exec > /page/report.pdf 2>&1\nexec /usr/bin/python3 -c '${ESCAPE}'`);
  const seen = Buffer.from(await printPdf(browser, '')).toString('utf8');
  assert.match(seen, /^chroot refused 1$/m);
  assert.match(seen, /^old \[\]$/m);
  assert.match(seen, /^root refused 30$/m);
  assert.match(seen, /^namespace -1$/m);
  assert.match(seen, /^mount -1$/m);
  for (const kind of ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'])
    assert.match(seen, new RegExp(`Cap${kind}:\\t0+\\n`));
  assert.match(seen, /NoNewPrivs:\t1/);
});

test('the browser of an ordinary user is as confined as the browser of root', {
  skip: canShutIn && process.getuid?.() === 0 ? false : 'only root can act as another user',
}, () => {
  const browser = standIn(
    'exec > /page/report.pdf 2>&1; ls /; touch /outside; grep CapEff /proc/self/status; exit 0',
  );
  using confined = confine(browser);
  for (const path of [shell.cwd, temporary, programs]) chmodSync(path, 0o755);
  const folder = dirname(confined.folder);
  for (const path of [folder, confined.folder, join(folder, 'root')]) chownSync(path, NOBODY, NOBODY);
  const { status, stderr } = spawnSync(
    'setpriv',
    [
      ...[`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'],
      ...[confined.program, ...confined.arguments([])],
    ],
    { env: confined.env, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  const seen = readFileSync(join(confined.folder, 'report.pdf'), 'utf8');
  assert.match(seen, /^page$/m);
  assert.match(seen, /outside.*Read-only/);
  assert.match(seen, /CapEff:\t0+\n/);
});

test('a browser that prints nothing causes an error that names this reason', async () => {
  await assert.rejects(printPdf(standIn('exit 0'), ''), /was not made: .*print it from a browser/);
});

test('a run with a PDF report is refused before it begins when there is no browser or the file has a wrong extension', async () => {
  const env = {
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_ACCESS_TOKEN: 'x',
    SERVICE_WORKSPACE_ID: 'ws_home',
  };
  const none = await troupe(['run', 'x.py', '-o', 'x.pdf'], { env: { ...env, PATH: '/nowhere' } });
  assert.deepEqual([none.exitCode, /Install one, or write an \.html/.test(none.err)], [2, true], none.err);
  const odd = await troupe(['run', 'x.py', '-o', 'x.docx'], { env });
  assert.deepEqual([odd.exitCode, /must end in \.html, \.pdf/.test(odd.err)], [2, true], odd.err);
});

const installed = (() => {
  try {
    return requireBrowser(process.env.PATH);
  } catch {
    return undefined;
  }
})();
if (installed !== undefined && canShutIn)
  test('the installed browser prints a page', async () => {
    const bytes = await printPdf(installed, '<!doctype html><title>T</title><h1>Hällo</h1>');
    assert.equal(Buffer.from(bytes).subarray(0, 5).toString('latin1'), '%PDF-');
  });
