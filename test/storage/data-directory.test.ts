import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { DATA_FILE, isUnfinished } from '#storage/disk/store-folder.ts';
import { openStore } from '#storage/open-store.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

test('a data directory belongs to one server under each of its names', async (t) => {
  const root = join(temporaryDirectory(t), 'data');
  const first = await DataDirectory.claim(root);
  t.after(() => first[Symbol.dispose]());
  const alias = `${root}-alias`;
  symlinkSync(root, alias);
  const taken = { message: `Another Troupe server is using the data directory ${realpathSync(root)}.` };
  await assert.rejects(DataDirectory.claim(root), taken);
  await assert.rejects(DataDirectory.claim(alias), taken);
});

test('a released directory can be claimed at once', async (t) => {
  const root = temporaryDirectory(t);
  for (let i = 0; i < 3; i++) (await DataDirectory.claim(root))[Symbol.dispose]();
});

test('other processes cannot take a claim in advance, and a claim applies only to its own directory', async (t) => {
  const root = realpathSync(temporaryDirectory(t));
  assert.equal(await DataDirectory.isClaimed(root), false);
  const first = await DataDirectory.claim(root);
  const name = `@troupe-data-${createHash('sha256').update(root).digest('hex')}`;
  assert.equal(readFileSync('/proc/net/unix', 'latin1').includes(name), false);
  assert.equal(statSync(join(root, 'claim')).mode & 0o777, 0o600);
  assert.equal(await DataDirectory.isClaimed(root), true);
  first[Symbol.dispose]();
  assert.equal(await DataDirectory.isClaimed(root), false);
});

test('a copy of a directory has its own claim', async (t) => {
  const root = temporaryDirectory(t);
  const first = await DataDirectory.claim(join(root, 'data'));
  t.after(() => first[Symbol.dispose]());
  cpSync(first.root, join(root, 'copy'), { recursive: true });
  const second = await DataDirectory.claim(join(root, 'copy'));
  t.after(() => second[Symbol.dispose]());
});

test('two directories can be claimed by two servers', async (t) => {
  for (let i = 0; i < 2; i++) {
    const directory = await DataDirectory.claim(temporaryDirectory(t));
    t.after(() => directory[Symbol.dispose]());
  }
});

test('a directory of another process is refused, and free once that process is killed', async (t) => {
  const root = temporaryDirectory(t);
  const holder = childScript(t, 'directory-holder', root);
  assert.equal(await holder.line(), 'claimed');
  await assert.rejects(DataDirectory.claim(root), /Another Troupe server is using the data directory/);
  await holder.kill();
  (await DataDirectory.claim(root))[Symbol.dispose]();
});

test('a refused claim does not affect the owner', async (t) => {
  const first = await DataDirectory.claim(temporaryDirectory(t));
  t.after(() => first[Symbol.dispose]());
  writeFileSync(join(first.runPath, 'zygote.sock'), '');
  await assert.rejects(DataDirectory.claim(first.root));
  assert.equal(existsSync(join(first.runPath, 'zygote.sock')), true);
});

test('everything in a data directory is closed to others, even if the directory existed before', async (t) => {
  const root = temporaryDirectory(t);
  mkdirSync(join(root, 'data'), { mode: 0o755 });
  const directory = await DataDirectory.claim(join(root, 'data'));
  t.after(() => directory[Symbol.dispose]());
  const files = directory.workspaceFiles('ws_1');
  const paths = [directory.root, directory.storePath, directory.runPath, files, join(files, '..')];
  assert.deepEqual(
    paths.map((path) => (statSync(path).mode & 0o777).toString(8)),
    paths.map(() => '700'),
  );
  assert.equal(files, join(directory.root, 'workspaces', 'ws_1', 'files'));
});

test('a new server removes dead sockets and keeps the files of workspaces', async (t) => {
  const root = temporaryDirectory(t);
  const first = await DataDirectory.claim(root);
  writeFileSync(join(first.runPath, 'zygote.sock'), '');
  writeFileSync(join(first.workspaceFiles('ws_1'), 'notes.txt'), 'mine');
  first[Symbol.dispose]();
  const second = await DataDirectory.claim(root);
  t.after(() => second[Symbol.dispose]());
  assert.equal(existsSync(join(second.runPath, 'zygote.sock')), false);
  assert.equal(existsSync(join(second.workspaceFiles('ws_1'), 'notes.txt')), true);
});

test('only a store without a head, as a power cut during the first start leaves it, counts as unfinished', async (t) => {
  const root = temporaryDirectory(t);
  const file = join(root, 'store', DATA_FILE);
  const unfinished = () => isUnfinished(root, join(root, 'keyring.json'));
  mkdirSync(join(root, 'store'));
  for (const bytes of [0, 4096, 8192, 12_288]) {
    writeFileSync(file, Buffer.alloc(bytes));
    assert.equal(unfinished(), true, `${bytes} bytes`);
  }
  writeFileSync(join(root, 'bootstrap.json'), '{}');
  assert.equal(unfinished(), false, 'a token exists, so the store was used');
  rmSync(join(root, 'bootstrap.json'));
  writeFileSync(file, Buffer.alloc(16_384));
  assert.equal(unfinished(), false, 'it is longer than the first commit makes it');
  rmSync(file);
  await (await openStore(join(root, 'store'), assert.fail))[Symbol.asyncDispose]();
  assert.equal(unfinished(), false, 'it has a head');
});
