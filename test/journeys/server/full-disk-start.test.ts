// tier: whole, because it kills, fills and restarts servers of several processes
/**
 * A server that is started while the disk is full either starts or says why it cannot. Once there
 * is space, it starts.
 */
import assert from 'node:assert/strict';
import { type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { startChildServer } from '#test/support/child-server.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const fileOf = (name: string) => fileURLToPath(new URL(`../../../server/${name}.js`, import.meta.url));

function start(dataDir: string, stdio: SpawnOptions['stdio'], args = [fileOf('main')]) {
  const { PATH = '' } = process.env;
  const env = { PATH, ...SETTINGS, ...pythonOfTests(), TROUPE_DATA_DIR: dataDir };
  return spawn(process.execPath, args, { cwd: '/', env, stdio });
}

/** Resolves with the ended process and its only line of output. */
async function ending(dataDir: string, args?: string[]) {
  const child = start(dataDir, ['ignore', 'ignore', 'pipe'], args);
  const [line, [code, signal]] = await Promise.all([text(child.stderr!), once(child, 'close')]);
  return { line: line.trim(), code, signal };
}

for (const spareBytes of [0, 64 * 1024])
  test(`a first start with ${spareBytes} bytes of disk reports that the disk is full, and succeeds once there is space`, {
    skip: noSmallDisk,
  }, async (t) => {
    const disk = smallDisk(t, 24);
    const dataDir = join(disk, 'data');
    const file = fillDisk(disk, spareBytes);
    const line = `troupe: The store at ${join(dataDir, 'store')} cannot be opened: the disk is full. Free some disk space.`;
    assert.deepEqual(await ending(dataDir), { line, code: 1, signal: null });
    rmSync(file);
    const server = await startChildServer(t, { TROUPE_DATA_DIR: dataDir });
    assert.deepEqual((await server.client.notebooks.list()).items, []);
  });

test('a store without its table of readers is not opened on a full disk, by a server or a command', {
  skip: noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 24);
  const dataDir = join(disk, 'data');
  const server = await startChildServer(t, { TROUPE_DATA_DIR: dataDir });
  await server.end('SIGTERM');
  rmSync(join(dataDir, 'store', 'lock.mdb')); // as after a restore
  fillDisk(disk);
  for (const args of [[fileOf('main')], [fileOf('cli'), 'verify']]) {
    const { line, code } = await ending(dataDir, args);
    assert.equal(code, 1);
    assert.match(
      line,
      /^troupe: The store at .* cannot be opened: the disk is full\. Free some disk space\.$/,
    );
  }
});

test('a store that a killed first start left without its first pages is created again', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  mkdirSync(join(dataDir, 'store'), { recursive: true });
  writeFileSync(join(dataDir, 'store', 'data.mdb'), '');
  const server = await startChildServer(t, { TROUPE_DATA_DIR: dataDir });
  assert.deepEqual((await server.client.notebooks.list()).items, []);
});

test('a server starts even if the file for its readable lines is on a full disk', {
  skip: noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 1);
  fillDisk(disk);
  const stderr = openSync(join(disk, 'lines'), 'w');
  const dataDir = temporaryDirectory(t);
  const child = start(dataDir, ['ignore', 'pipe', stderr]);
  t.after(() => child.kill('SIGKILL'));
  closeSync(stderr);
  const ended = once(child, 'close');
  const ready = new Promise<void>((resolve) => {
    let log = '';
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      log += part;
      if (log.includes('"msg":"ready"')) resolve();
    });
  });
  await Promise.race([ready, ended.then(([code]) => assert.fail(`the server ended with ${code}`))]);
  assert.ok(existsSync(join(dataDir, 'store', 'data.mdb')));
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

for (const workers of ['1', '3'])
  test(`a server of ${workers} workers that only reads works on a full disk and a read-only mount, even without a reader table`, {
    skip: noSmallDisk,
  }, async (t) => {
    const disk = smallDisk(t, 24);
    const settings = { TROUPE_DATA_DIR: join(disk, 'data'), TROUPE_WORKERS: workers };
    const first = await startChildServer(t, settings);
    const { id } = await first.client.notebooks.create({});
    await first.end('SIGTERM');
    const reads = async () => {
      const server = await startChildServer(t, { ...settings, TROUPE_READ_ONLY: 'true' });
      assert.equal((await server.client.notebooks.get(id)).id, id);
      await assert.rejects(server.client.notebooks.create({}), { code: 'read_only' });
      assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
    };
    const everything = fillDisk(disk);
    await reads();
    rmSync(everything);
    for (const hasTable of [true, false]) {
      if (!hasTable) rmSync(join(disk, 'data/store/lock.mdb')); // as after a restore
      assert.equal(spawnSync('mount', ['-o', 'remount,ro', disk]).status, 0);
      await reads();
      assert.equal(spawnSync('mount', ['-o', 'remount,rw', disk]).status, 0);
    }
  });
