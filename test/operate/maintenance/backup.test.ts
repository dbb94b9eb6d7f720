import assert from 'node:assert/strict';
import {
  chownSync,
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
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { putSealed, readSealed } from '#src/datasource/keys/sealed-connections.ts';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { compact } from '#src/operate/maintenance/compact.ts';
import { ChainWriter } from '#src/operate/maintenance/increment.ts';
import { markStore } from '#src/operate/maintenance/lineage.ts';
import { readManifest } from '#src/operate/maintenance/manifest.ts';
import { restore } from '#src/operate/maintenance/restore.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStore } from '#storage/open-store.ts';
import { keyChecks } from '#storage/records/datasources.ts';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { damage } from '#test/support/store/damage.ts';
import { filledDirectory, things } from '#test/support/store/filled-directory.ts';
import { sealedPlace, sealedText } from '#test/support/store/sealed.ts';

test('a restored backup of a server under load has every write that was acknowledged before the backup began', async (t) => {
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
    await eventually('many writes are acknowledged', () => acknowledged.length >= 100 * round);
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
    await new Promise((resolve) => setTimeout(resolve, 20)); // a pace, so that the backup has processor time, too
  }
}

test('a file that is deleted between two increments is not restored', async (t) => {
  const dataDir = await filledDirectory(t);
  await using store = await openStore(join(dataDir, 'store'), assert.fail);
  const backup = join(dataDir, '..', 'backup');
  const copyStore = (to: string, isCompact: boolean) => store.copyTo(to, isCompact);
  await backUp({ dataDir, to: backup, copyStore, mark: await markStore(store) });
  const files = join('workspaces', 'ws_1', 'files');
  const chain = ChainWriter.open({ directory: backup, dataDir, store });
  await chain?.add();
  rmSync(join(dataDir, files, 'run.sh'));
  assert.equal((await chain?.add())?.removed, 1);
  const restored = join(dataDir, '..', 'restored');
  await restore({ from: backup, dataDir: restored });
  assert.deepEqual(readdirSync(join(restored, files)), ['deep']);
});

test('one flipped byte at any place of a backup is found, and such a backup is not restored', async (t) => {
  const dataDir = await filledDirectory(t);
  const to = join(dataDir, '..', 'backup');
  await backUp({ dataDir, to });
  assert.deepEqual(await verify(to), { isBackup: true, records: 501, files: 2, increments: 0, damage: [] });
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

test('a compacted store is smaller, has every record, and works; compacting changes nothing while a server runs', async (t) => {
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

test("a store that root compacts still belongs to the server's user", async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can compact the store of another user');
  const dataDir = await filledDirectory(t);
  const file = join(dataDir, 'store', 'data.mdb');
  for (const path of [dataDir, join(dataDir, 'store'), file]) chownSync(path, 65_534, 65_533);
  await compact(dataDir);
  const { uid, gid } = statSync(file);
  assert.deepEqual([uid, gid], [65_534, 65_533]);
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

test('a rotated keyring opens earlier backups, and a backup lists only the keys that it needs', async (t) => {
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
  // A backup needs a key even if the check of the key is damaged.
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

test('a restored directory has the original files, closed to others, and its store', async (t) => {
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
    /Another Troupe server|exists. A backup can only be restored/,
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

test('a backup of a build before 1.0.0 is refused, and the error says how its notebooks move', async (t) => {
  const dataDir = await filledDirectory(t);
  const from = join(dataDir, '..', 'backup');
  await backUp({ dataDir, to: from });
  writeFileSync(join(from, 'manifest.json'), JSON.stringify({ ...readManifest(from), version: 1 }));
  const other = join(dataDir, '..', 'other');
  const refusal = {
    message: `The backup ${from} was made by a build before 1.0.0, which this release does not read. Export the notebooks with the build that wrote it (troupe notebooks export), and import them into a new data directory (troupe notebooks import).`,
  };
  await assert.rejects(restore({ from, dataDir: other }), refusal);
  await assert.rejects(verify(from), refusal);
  assert.ok(!existsSync(other));
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
