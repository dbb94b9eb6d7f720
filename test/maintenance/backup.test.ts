import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { Client } from '#src/client/client.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { putSealed, readSealed } from '#src/datasource/keys/sealed-connections.ts';
import { backUp } from '#src/maintenance/backup.ts';
import { BackupSchedule } from '#src/maintenance/backup-schedule.ts';
import { compact } from '#src/maintenance/compact.ts';
import { readManifest } from '#src/maintenance/manifest.ts';
import { restore } from '#src/maintenance/restore.ts';
import { verify } from '#src/maintenance/verify.ts';
import { defineRecord } from '#storage/codec.ts';
import { keyChecks } from '#storage/datasources.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStore } from '#storage/open-store.ts';
import { Shell } from '#test/cli/troupe-process.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { damage } from '#test/support/damage.ts';
import { sealedPlace, sealedText } from '#test/support/sealed.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/temporary-store.ts';

const things = defineRecord<string>('thing', 1);

/** A data directory with a store of 500 records and files of one workspace. No server uses it. */
async function filledDirectory(t: TestContext): Promise<string> {
  const root = temporaryDirectory(t);
  const dataDir = join(root, 'data');
  const files = join(dataDir, 'workspaces', 'ws_1', 'files');
  mkdirSync(join(files, 'deep'), { recursive: true });
  writeFileSync(join(files, 'deep', 'table.csv'), 'a,b\n1,2\n');
  writeFileSync(join(files, 'run.sh'), 'true', { mode: 0o755 });
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  store.write((tx) => {
    for (let n = 0; n < 500; n++) tx.put(things, `thing ${n} `.repeat(n % 50), 'ws_1', `t${n}`);
  });
  await store.durable();
  await store[Symbol.asyncDispose]();
  return dataDir;
}

test('a backup of a server under load, restored elsewhere, has every write that was acknowledged before it began', async (t) => {
  const server = await startChildServer(t);
  const { client, dataDir } = server;
  const files = join(dataDir, 'workspaces', OWNER.workspaceId, 'files');
  mkdirSync(files, { recursive: true });
  writeFileSync(join(files, 'sales.db'), '');
  await client.datasources.create({ slug: 'sales', connection: { kind: 'sqlite', path: 'sales.db' } });
  const shell = new Shell(t);
  const env = { TROUPE_DATA_DIR: dataDir };
  const acknowledged: string[] = [];
  const writing = new AbortController();
  const writers = Array.from({ length: 4 }, () => keepWriting(client, acknowledged, writing.signal));
  for (const round of [1, 2, 3]) {
    while (acknowledged.length < 100 * round) await new Promise((resolve) => setTimeout(resolve, 5));
    const before = [...acknowledged];
    const to = join(shell.cwd, `backup-${round}`);
    const shown = await shell.text(['backup', to, ...(round === 3 ? ['--compact'] : [])], { env });
    assert.match(
      shown,
      /a store of \d+ bytes and 1 files\n {2}to restore it, keep the keyring with key_\w+$/,
    );
    assert.deepEqual((await shell.json<{ damage: unknown[] }>(['verify', to])).damage, []);
    const elsewhere = join(shell.cwd, `data-${round}`);
    await shell.text(['restore', to], { env: { TROUPE_DATA_DIR: elsewhere } });
    cpSync(join(dataDir, 'keyring.json'), join(elsewhere, 'keyring.json'));
    const restored = await startChildServer(t, { TROUPE_DATA_DIR: elsewhere });
    const kept = new Set<string>();
    for await (const { id } of notebooksOf(restored.client)) kept.add(id);
    assert.deepEqual(
      before.filter((id) => !kept.has(id)),
      [],
    );
    assert.equal((await restored.client.datasources.test('sales')).ok, true);
    await restored.end('SIGTERM');
  }
  writing.abort();
  await Promise.all(writers);
  assert.deepEqual((await shell.json<{ damage: unknown[] }>(['verify'], { env })).damage, []);
});

async function* notebooksOf(client: Client) {
  for (let after: string | undefined; ; ) {
    const { items, nextCursor } = await client.notebooks.list({ limit: 100, after });
    yield* items;
    if (nextCursor === null) return;
    after = nextCursor;
  }
}

/** Creates some fifty notebooks a second. */
async function keepWriting(client: Client, acknowledged: string[], signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { id } = await client.notebooks.create({ serialization: { cells: [] } });
    acknowledged.push(id);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('one flipped byte anywhere in a backup is found, and such a backup is not restored', async (t) => {
  const dataDir = await filledDirectory(t);
  const to = join(dataDir, '..', 'backup');
  await backUp({ dataDir, to });
  assert.deepEqual(await verify(to), { isBackup: true, records: 501, files: 2, damage: [] });
  const file = join(to, 'store', 'data.mdb');
  const sound = readFileSync(file);
  for (const at of [60, 5000, Math.floor(sound.length / 2), sound.length - 1]) {
    const spoiled = Buffer.from(sound);
    spoiled[at]! ^= 1;
    writeFileSync(file, spoiled);
    assert.deepEqual((await verify(to)).damage, ['store/data.mdb has other content']);
  }
  const restoring = restore({ from: to, dataDir: join(dataDir, '..', 'other') });
  await assert.rejects(restoring, /is damaged: store\/data\.mdb has other content\. Restore another one\.$/);
  assert.equal(existsSync(join(dataDir, '..', 'other')), false);
  writeFileSync(file, sound);
  truncateSync(join(to, 'workspaces', 'ws_1', 'files', 'run.sh'), 1);
  assert.deepEqual((await verify(to)).damage, ['workspaces/ws_1/files/run.sh has 1 bytes instead of 4']);
});

test('a compacted store is smaller, has every record, and serves; with a server at work nothing is changed', async (t) => {
  const dataDir = await filledDirectory(t);
  const file = join(dataDir, 'store', 'data.mdb');
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  store.write((tx) => {
    for (let n = 0; n < 200; n++) tx.put(things, 'x'.repeat(20_000), 'ws_2', `t${n}`);
  });
  await store.durable();
  store.write((tx) => {
    for (let n = 0; n < 200; n++) tx.remove(things, 'ws_2', `t${n}`);
  });
  await store.durable();
  await store[Symbol.asyncDispose]();
  const before = statSync(file).size;
  const shell = new Shell(t);
  const env = { TROUPE_DATA_DIR: dataDir };
  const { bytesAfter } = await shell.json<{ bytesAfter: number }>(['compact'], { env });
  assert.equal(statSync(file).size, bytesAfter);
  assert.ok(bytesAfter < before / 4, `${bytesAfter} of ${before} bytes`);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.startsWith('store')),
    ['store'],
  );
  const { damage, records } = await shell.json<{ damage: string[]; records: number }>(['verify'], { env });
  assert.deepEqual([damage, records], [[], 501]);
  const server = await startChildServer(t, { TROUPE_DATA_DIR: dataDir });
  const { id } = await server.client.notebooks.create({ serialization: { cells: [] } });
  await assert.rejects(compact(dataDir), /Another Troupe server is using the data directory/);
  assert.equal((await server.client.notebooks.get(id)).id, id);
});

test('a store with a damaged record is not compacted', async (t) => {
  const dataDir = await filledDirectory(t);
  const file = join(dataDir, 'store', 'data.mdb');
  const bytes = readFileSync(file);
  const text = Buffer.from('thing 49 thing 49');
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) bytes[at]! ^= 1;
  writeFileSync(file, bytes);
  await assert.rejects(compact(dataDir), /The record ws_1\/thing\/t\d+ is damaged, so nothing was changed/);
  assert.deepEqual(readFileSync(file), bytes);
});

test('a keyring opens the backups of before its rotations, and a backup names only the keys that it needs', async (t) => {
  const dataDir = await filledDirectory(t);
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  const keyring = join(dataDir, 'keyring.json');
  const keys = await KeyringStore.open(store, keyring);
  store.write((tx) => putSealed(tx, keys.ring, sealedPlace(1), sealedText(1)));
  await store.durable();
  const first = keys.ring.active;
  const old = await backUp({ dataDir, to: join(dataDir, '..', 'old') });
  const second = await keys.add();
  await keys.rotate();
  // A backup needs a key whose check is damaged all the same.
  damage(join(dataDir, 'store', 'data.mdb'), store.get(keyChecks, SYSTEM, second)!.box);
  const recent = await backUp({ dataDir, to: join(dataDir, '..', 'recent') });
  await store[Symbol.asyncDispose]();
  assert.deepEqual([old.keyIds, recent.keyIds], [[first], [second]]);
  for (const name of ['old', 'recent']) {
    const elsewhere = join(dataDir, '..', `data-${name}`);
    await restore({ from: join(dataDir, '..', name), dataDir: elsewhere });
    cpSync(keyring, join(elsewhere, 'keyring.json'));
    const restored = await openStore(join(elsewhere, 'store'), assert.fail);
    const opened = await KeyringStore.open(restored, join(elsewhere, 'keyring.json'));
    assert.deepEqual(readSealed(restored, opened, sealedPlace(1)), sealedText(1));
    await restored[Symbol.asyncDispose]();
  }
});

test('a restored directory has the files as they were, closed to others, and its store', async (t) => {
  const dataDir = await filledDirectory(t);
  const [to, other] = [join(dataDir, '..', 'backup'), join(dataDir, '..', 'other')];
  await backUp({ dataDir, to, compact: true });
  await restore({ from: to, dataDir: other });
  const files = join(other, 'workspaces', 'ws_1', 'files');
  assert.equal(readFileSync(join(files, 'deep', 'table.csv'), 'utf8'), 'a,b\n1,2\n');
  const modes = ['run.sh', 'deep', join('deep', 'table.csv')].map(
    (name) => lstatSync(join(files, name)).mode & 0o777,
  );
  assert.deepEqual(modes, [0o700, 0o700, 0o600]);
  const store = await openStore(join(other, 'store'), assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  assert.equal(store.get(things, 'ws_1', 't49'), 'thing 49 '.repeat(49));
  await assert.rejects(
    restore({ from: to, dataDir: other }),
    /Another Troupe server|exists: a backup is restored/,
  );
});

test('a backup follows no link out of the files of a workspace, and restores links as links', async (t) => {
  const dataDir = await filledDirectory(t);
  const [to, other] = [join(dataDir, '..', 'backup'), join(dataDir, '..', 'other')];
  const files = join(dataDir, 'workspaces', 'ws_1', 'files');
  writeFileSync(join(dataDir, '..', 'secret'), 'secret');
  symlinkSync(join(dataDir, '..', 'secret'), join(files, 'link'));
  symlinkSync(join(dataDir, '..'), join(files, 'folder'));
  const { links, files: copied } = await backUp({ dataDir, to });
  assert.deepEqual(links.map(({ path }) => path).sort(), ['ws_1/files/folder', 'ws_1/files/link']);
  assert.deepEqual(copied.map(({ path }) => path).sort(), ['ws_1/files/deep/table.csv', 'ws_1/files/run.sh']);
  await restore({ from: to, dataDir: other });
  assert.equal(lstatSync(join(other, 'workspaces', 'ws_1', 'files', 'link')).isSymbolicLink(), true);
});

test('a manifest that names files elsewhere is refused', async (t) => {
  const dataDir = await filledDirectory(t);
  const to = join(dataDir, '..', 'backup');
  await backUp({ dataDir, to });
  const manifest = readManifest(to);
  const [file] = manifest.files;
  const path = '../store/data.mdb';
  const { bytes, sha256 } = manifest.store;
  writeFileSync(
    join(to, 'manifest.json'),
    JSON.stringify({ ...manifest, files: [{ ...file, path, bytes, sha256 }] }),
  );
  await assert.rejects(restore({ from: to, dataDir: join(dataDir, '..', 'other') }), /outside of the backup/);
});

test('a clock that was ahead keeps no backup from being made, and none that is newer is deleted for it', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const [past, ahead] = ['troupe-2026-01-01T00-00-00Z', 'troupe-2099-01-01T00-00-00Z'];
  for (const name of [past, ahead]) mkdirSync(join(directory, name), { recursive: true });
  const { log } = rememberingLog();
  const schedule = new BackupSchedule({
    directory,
    everyMs: 3_600_000,
    keep: 2,
    dataDir,
    copyStore: (to) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true })),
    log,
  });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  const names = readdirSync(directory).sort();
  assert.equal(names.length, 2);
  assert.equal(names[0], past);
  assert.equal(readManifest(join(directory, names[1]!)).files.length, 2);
});

test('an operator is warned while backups cannot be made, and not any more once they can', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  writeFileSync(directory, 'a file in the place of the directory');
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  assert.deepEqual(schedule.warnings, ['The latest backup could not be made: look into the log.']);
  rmSync(directory);
  await schedule.look();
  assert.deepEqual(schedule.warnings, []);
  assert.equal(readdirSync(directory).length, 1);
});

test('a server makes backups at its interval and keeps the newest ones', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  for (const day of ['01', '02', '03'])
    mkdirSync(join(directory, `troupe-2026-01-${day}T00-00-00Z`), { recursive: true });
  mkdirSync(join(directory, 'troupe-2026-01-04T00-00-00Z.partial-1'));
  mkdirSync(join(directory, 'of-somebody-else'));
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const { log, lines } = rememberingLog();
  const copyStore = (to: string, compact: boolean) => store.copyTo(to, compact);
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  await schedule.look(); // none is due
  const names = readdirSync(directory).sort();
  assert.deepEqual(names.slice(0, 2), ['of-somebody-else', 'troupe-2026-01-03T00-00-00Z']);
  assert.equal(names.length, 3);
  assert.equal(readManifest(join(directory, names[2]!)).files.length, 2);
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['a backup was made', 'an old backup was deleted', 'an old backup was deleted'],
  );
  rmSync(directory, { recursive: true });
});
