import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { copyTree } from '#src/operate/maintenance/file-copy.ts';
import { restore } from '#src/operate/maintenance/restore.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { openStore } from '#storage/open-store.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const MIB = 1024 * 1024;

/** A data directory with an empty store, and the folder of one workspace. */
async function emptyDirectory(t: TestContext) {
  const root = temporaryDirectory(t);
  const dataDir = join(root, 'data');
  const files = join(dataDir, 'workspaces', 'ws_1', 'files');
  mkdirSync(files, { recursive: true });
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  await store[Symbol.asyncDispose]();
  return { root, dataDir, files, backup: join(root, 'backup'), other: join(root, 'other') };
}

/**
 * Makes nested folders, as notebook code can. Their whole path is longer than the system accepts at
 * once.
 */
function digDeep(folder: string, levels: number): void {
  const script = 'import os, sys\nfor _ in range(int(sys.argv[1])): os.mkdir("d" * 200); os.chdir("d" * 200)';
  const { status, stderr } = spawnSync('python3', ['-c', script, String(levels)], { cwd: folder });
  assert.equal(status, 0, String(stderr));
}

test('folders that notebook code has made too deep do not prevent a backup', async (t) => {
  let deep: string | undefined;
  t.after(() => deep && spawnSync('rm', ['-r', deep])); // Node.js cannot remove it
  const { dataDir, files, backup, other } = await emptyDirectory(t);
  writeFileSync(join(files, 'table.csv'), '1');
  deep = join(files, 'd'.repeat(200));
  digDeep(files, 30);
  mkdirSync(join(files, 'levels', ...Array(300).fill('l')), { recursive: true });
  const manifest = await backUp({ dataDir, to: backup });
  assert.deepEqual(
    manifest.files.map(({ path }) => path),
    ['ws_1/files/table.csv'],
  );
  assert.equal(manifest.skipped.length, 2);
  await restore({ from: backup, dataDir: other });
  assert.deepEqual((await verify(other)).damage, []);
});

test('two names that are not UTF-8 do not prevent a backup', async (t) => {
  const { dataDir, files, backup } = await emptyDirectory(t);
  for (const last of [0xfe, 0xff]) writeFileSync(Buffer.from([...Buffer.from(`${files}/bad`), last]), '');
  writeFileSync(join(files, 'bad\ufffd'), '');
  writeFileSync(join(files, 'good'), '');
  const { files: copied, skipped } = await backUp({ dataDir, to: backup });
  assert.deepEqual(
    copied.map(({ path }) => path),
    ['ws_1/files/good'],
  );
  assert.equal(skipped.length, 3);
});

test('a restored workspace has its empty folders, and its files the times at which they were written', async (t) => {
  const { dataDir, files, backup, other } = await emptyDirectory(t);
  mkdirSync(join(files, 'out', 'plots'), { recursive: true });
  writeFileSync(join(files, 'table.csv'), '1');
  utimesSync(join(files, 'table.csv'), 1_000_000_000, 1_000_000_000);
  await backUp({ dataDir, to: backup });
  await restore({ from: backup, dataDir: other });
  const restored = join(other, 'workspaces', 'ws_1', 'files');
  assert.deepEqual(readdirSync(join(restored, 'out')), ['plots']);
  assert.equal(statSync(join(restored, 'out', 'plots')).mode & 0o777, 0o700);
  assert.equal(statSync(join(restored, 'table.csv')).mtimeMs, 1_000_000_000_000);
});

test('a sparse file takes no more disk space in a backup and after a restore than before', async (t) => {
  const { dataDir, files, backup, other } = await emptyDirectory(t);
  writeFileSync(join(files, 'sparse'), 'begin');
  truncateSync(join(files, 'sparse'), 64 * MIB);
  appendFileSync(join(files, 'sparse'), 'end');
  await backUp({ dataDir, to: backup });
  await restore({ from: backup, dataDir: other });
  for (const place of [backup, other]) {
    const { size, blocks } = statSync(join(place, 'workspaces', 'ws_1', 'files', 'sparse'));
    assert.equal(size, 64 * MIB + 3);
    assert.ok(blocks * 512 < 2 * MIB, `${blocks} blocks`);
  }
  assert.deepEqual((await verify(backup)).damage, []);
});

test('holes of sparse files are read up to a limit for each workspace, and files beyond it are listed', async (t) => {
  const { root, dataDir, files, backup } = await emptyDirectory(t);
  const sparse = (name: string, bytes: number) => {
    const path = join(dataDir, 'workspaces', name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
    truncateSync(path, bytes);
  };
  sparse('ws_1/files/at-the-limit', MIB);
  sparse('ws_2/files/one-past', MIB + 1);
  const tree = await copyTree(join(dataDir, 'workspaces'), join(root, 'copy'), undefined, MIB);
  assert.deepEqual(
    [tree.files.map(({ path }) => path), tree.skipped],
    [['ws_1/files/at-the-limit'], ['ws_2/files/one-past']],
  );
  writeFileSync(join(files, 'table.csv'), '1');
  sparse('ws_1/files/huge', 2 ** 43);
  const manifest = await backUp({ dataDir, to: backup });
  assert.deepEqual(manifest.skipped, ['ws_1/files/huge']);
  assert.equal(manifest.files.length, 3);
});

test('of a growing file, the part that existed when its copy began is copied', async (t) => {
  const root = temporaryDirectory(t);
  const [from, to] = [join(root, 'from'), join(root, 'to')];
  mkdirSync(from);
  const file = join(from, 'growing');
  writeFileSync(file, Buffer.alloc(8 * MIB, 1));
  // In each turn of the event loop in which the copy waits, the file grows by more than the copy
  // reads at once.
  const growing = setInterval(() => appendFileSync(file, Buffer.alloc(MIB, 1)), 0);
  t.after(() => clearInterval(growing));
  const { files } = await copyTree(from, to);
  const { size } = statSync(file);
  assert.ok(files[0]!.bytes < size, `${files[0]!.bytes} of ${size} bytes`);
  assert.equal(statSync(join(to, 'growing')).size, files[0]!.bytes);
});

test('an incompletely written backup is refused and removed', async (t) => {
  const { dataDir, files, backup } = await emptyDirectory(t);
  writeFileSync(join(files, 'data.bin'), Buffer.alloc(300_000, 1));
  const cli = fileURLToPath(new URL('../../../server/cli.js', import.meta.url));
  // Within the limit a write takes a part of the bytes without an error, as on a disk that is nearly full.
  const { status, stderr } = spawnSync(
    'bash',
    ['-c', 'trap "" XFSZ; ulimit -f 280; exec "$@"', '-', process.execPath, cli, 'backup', backup],
    { env: { PATH: process.env.PATH ?? '', TROUPE_DATA_DIR: dataDir }, encoding: 'utf8' },
  );
  assert.equal(status, 1, stderr);
  assert.match(stderr, /cannot be made: the file would be too large \(EFBIG\)/);
  assert.deepEqual(
    readdirSync(join(backup, '..')).filter((name) => name.startsWith('backup')),
    [],
  );
});
