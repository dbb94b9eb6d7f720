// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { lstatSync, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { ORDINARY_UID, obstacle, startAttacked } from './attacked-server.ts';

/** Returns every file below `root` that gives any right to users other than its owner. */
function openToOthers(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !lstatSync(path).isSymbolicLink() && (lstatSync(path).mode & 0o077) !== 0)
    .map((path) => `${relative(root, path)} ${(lstatSync(path).mode & 0o777).toString(8)}`);
}

test('files that the server or a kernel creates cannot be opened by other users', async (t) => {
  const umask = process.umask(0o000); // only the umask that the server sets for itself may decide
  t.after(() => process.umask(umask));
  const server = await startAttacked(t, { user: 'this user' });
  const notebook = await openNotebook(server, {
    a: 'import os\nos.makedirs("made/by")\nopen("made/by/a-cell", "w").write("x")',
  });
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await server.client.datasources.create({
    slug: 'kept',
    connection: { kind: 'sqlite', path: 'kept.sqlite' },
  });
  assert.deepEqual(openToOthers(server.dataDir), []);
  assert.equal(lstatSync(server.dataDir).mode & 0o777, 0o700);
  assert.equal(lstatSync(server.keyringFile).mode & 0o777, 0o600);
  assert.equal(lstatSync(join(server.dataDir, 'bootstrap.json')).mode & 0o777, 0o600);
});

const USER = process.getuid?.() === 0 ? 'an ordinary user' : 'this user';

test('other programs of the same user cannot trace the server or read its memory', {
  skip: obstacle(USER) ?? false,
}, async (t) => {
  const { pid } = await startAttacked(t, { user: USER });
  const { uid, gid } = statSync('/proc/self');
  const asThem = USER === 'this user' ? { uid, gid } : { uid: ORDINARY_UID, gid: ORDINARY_UID };
  const read = (path: string) => spawnSync('cat', [path], { ...asThem, encoding: 'utf8' });
  const own = spawn('sleep', ['60'], { ...asThem, stdio: 'ignore' });
  t.after(() => own.kill());
  assert.equal(read(`/proc/${own.pid}/environ`).status, 0, 'it may look into others');
  for (const what of ['environ', 'mem', 'maps']) {
    const { status, stdout, stderr } = read(`/proc/${pid}/${what}`);
    assert.deepEqual([status, stdout], [1, ''], what);
    assert.match(stderr, /Permission denied/);
  }
});
