import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { FrontEndFiles, type Installed } from '#src/notebook/pages/front-end-files.ts';

/** A folder like that of marimo's package, next to a file that must not be served. */
function install(t: TestContext): Installed {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-marimo-'));
  t.after(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, '_static', 'assets', 'folder.js'), { recursive: true });
  for (const name of [
    'secret.js',
    '_static/index.html',
    '_static/notes.md',
    '_static/.hidden',
    '_static/favicon.ico',
    '_static/assets/app-1a.js',
  ]) {
    writeFileSync(join(directory, name), name);
  }
  symlinkSync(join(directory, '_static/assets/app-1a.js'), join(directory, '_static/assets/linked.js'));
  return { version: '1.2.3', directory };
}

const textOf = async (files: FrontEndFiles, name: string, version = '1.2.3') =>
  Buffer.from((await files.read(version, name)).bytes).toString();

test('files of the front end and links to them are served by their names', async (t) => {
  const installed = install(t);
  const files = new FrontEndFiles(() => installed);
  assert.equal(files.version(), '1.2.3');
  assert.deepEqual(await files.read('1.2.3', 'favicon.ico'), {
    contentType: 'image/x-icon',
    bytes: Buffer.from('_static/favicon.ico'),
    shared: {},
  });
  assert.equal(await textOf(files, 'assets/app-1a.js'), '_static/assets/app-1a.js');
  assert.equal(await textOf(files, 'assets/linked.js'), '_static/assets/app-1a.js');
});

test('readers of a file share its bytes, because they need no token and may read slowly', async (t) => {
  const installed = install(t);
  const files = new FrontEndFiles(() => installed);
  const read = () => files.read('1.2.3', 'assets/app-1a.js');
  const [one, other] = await Promise.all([read(), read()]);
  const later = await read();
  assert.ok(one.bytes === other.bytes && one.bytes === later.bytes);
  assert.ok(one.shared === other.shared && one.shared === later.shared);
});

for (const name of [
  'index.html',
  'notes.md',
  '.hidden',
  'assets/folder.js',
  'assets/app-1a.js/',
  'assets/../favicon.ico',
  '../secret.js',
  'assets/../../secret.js',
  '/etc/hosts.js',
  'app-1a.js',
  '__proto__',
  'constructor',
  'x.constructor',
  '',
]) {
  test(`${JSON.stringify(name)} is not served`, async (t) => {
    const installed = install(t);
    await assert.rejects(new FrontEndFiles(() => installed).read('1.2.3', name), { code: 'not_found' });
  });
}

test('only the installed version of the front end is served, even after a change of the version', async (t) => {
  const before = install(t);
  let installed: Installed | undefined;
  const files = new FrontEndFiles(() => installed);
  assert.throws(() => files.version(), { code: 'unavailable' });
  await assert.rejects(files.read('1.2.3', 'favicon.ico'), { code: 'not_found' });
  installed = before;
  assert.equal(await textOf(files, 'favicon.ico'), '_static/favicon.ico');
  installed = { ...install(t), version: '1.2.4' };
  await assert.rejects(files.read('1.2.3', 'favicon.ico'), { code: 'not_found' });
  assert.equal(await textOf(files, 'favicon.ico', '1.2.4'), '_static/favicon.ico');
});

test('a package without a front end has no files', async () => {
  const files = new FrontEndFiles(() => ({ version: '1', directory: '/nonexistent' }));
  await assert.rejects(files.read('1', 'favicon.ico'), { code: 'not_found' });
});
