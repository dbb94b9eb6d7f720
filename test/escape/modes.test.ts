// tier: whole, because it attacks servers in four set-ups; test/confined/python/test_modes.py stays in the gate
/**
 * Without namespaces, notebook code changes modes and times of no file of the server and of the system, and the next kernel reads no
 * file that was closed before.
 */
import assert from 'node:assert/strict';
import { chmodSync, lstatSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type AttackOptions, ORDINARY_UID, obstacle, startAttacked } from './attacked-server.ts';
import { answerOf } from './attacks.ts';

const attackCell = (paths: readonly string[]) => `
import errno, json, os
outcome = {}
def attempt(name, change):
    try: change(); outcome[name] = None
    except OSError as error: outcome[name] = errno.errorcode[error.errno]
for path in json.loads(${JSON.stringify(JSON.stringify(paths))}):
    os.symlink(path, "link")
    attempt("mode of " + path, lambda: os.chmod(path, 0o644))
    attempt("no mode of " + path, lambda: os.chmod(path, 0))
    attempt("mode by a link to " + path, lambda: os.chmod("link", 0o644))
    attempt("times of " + path, lambda: os.utime(path, (1, 2)))
    attempt("owner of " + path, lambda: os.chown(path, os.getuid(), os.getgid()))
    attempt("attribute of " + path, lambda: os.setxattr(path, "user.x", b"1"))
    try: fd = os.open(path, os.O_RDONLY)
    except OSError: pass
    else:
        attempt("mode by a descriptor of " + path, lambda: os.fchmod(fd, 0o644))
        attempt("times by a descriptor of " + path, lambda: os.utime(fd, (1, 2)))
    os.unlink("link")
print("ANSWER" + json.dumps(outcome))
`;
const readCell = (path: string) => `
import json as _json
try: found = open(${JSON.stringify(path)}).read()
except OSError as error: found = type(error).__name__
print("ANSWER" + _json.dumps({"found": found}))
`;
const USE = `
import json as _use, os as _os, shutil
open("mine", "w").write("x"); shutil.copy2("mine", "copied"); _os.chmod("copied", 0o755); _os.utime("copied", (1, 2))
found = _os.stat("copied")
print("ANSWER" + _use.dumps({"mode": found.st_mode & 0o7777, "time": found.st_mtime}))
`;

const PLACES: readonly AttackOptions[] = [
  { user: 'this user', without: 'namespaces' },
  { user: 'this user', without: 'namespaces', settings: { TROUPE_KERNEL_UID: String(ORDINARY_UID) } },
  { user: 'an ordinary user', without: 'namespaces' },
  { user: 'an ordinary user', without: 'namespaces,landlock' },
];
for (const { user, without = '', settings = {} } of PLACES) {
  const place = [`without ${without}`, ...Object.keys(settings)].join(', with ');
  test(`notebook code of ${user} changes no mode and no time of files of the server and of the system, ${place}`, {
    skip:
      obstacle(user) ?? (settings.TROUPE_KERNEL_UID && process.getuid?.() !== 0 ? 'it needs root' : false),
  }, async (t) => {
    const server = await startAttacked(t, { user, without, settings });
    const isRoot = statSync(server.dataDir).uid === 0;
    const secret = isRoot ? closedFileOfTheSystem(t) : undefined;
    const paths = [
      ...[server.host.keyFile, server.configFile, server.dataDir, dirname(server.neighbour.file)],
      ...['bootstrap.json', 'store', 'store/data.mdb', 'run'].map((name) => join(server.dataDir, name)),
      ...(secret === undefined
        ? []
        : [secret, dirname(secret), '/etc/passwd', '/etc', '/dev/shm', '/dev/null']),
      join(server.keyringFile, '../for-all.txt'),
    ];
    const bystander = await openNotebook(server.neighbour, { a: '1' });
    assert.equal((await bystander.run(['a'])).status, 'completed');
    const attributes = () =>
      paths.map((path) => [
        path,
        lstatSync(path).mode,
        lstatSync(path).uid,
        lstatSync(path).mtimeMs < 10_000,
      ]);
    const before = attributes();
    const attacker = await openNotebook(server, { attacks: attackCell(paths), use: USE });
    const outcome = await answerOf(attacker, 'attacks');
    assert.ok(Object.keys(outcome).length >= 6 * paths.length);
    const done = Object.entries(outcome).filter(([, code]) => code === null);
    assert.deepEqual(done, [], server.confinement);
    assert.deepEqual(attributes(), before);
    assert.deepEqual(await answerOf(attacker, 'use'), { mode: 0o755, time: 2 });
    if (secret !== undefined) {
      const next = await openNotebook(server.neighbour, { read: readCell(secret) });
      assert.deepEqual(await answerOf(next, 'read'), { found: 'PermissionError' });
    }
    // The folder for sockets is still there, so kernels start.
    const later = await openNotebook(server, { a: '1' });
    assert.equal((await later.run(['a'])).status, 'completed');
  });
}

/** Makes a file in /etc that only root may read. */
function closedFileOfTheSystem(t: { after(f: () => void): void }): string {
  const folder = mkdtempSync('/etc/troupe-test-');
  t.after(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const file = join(folder, 'secret');
  writeFileSync(file, 'secret', { mode: 0o600 });
  return file;
}
