/** The quota of a workspace's files, and the usage that a workspace shows. */
import assert from 'node:assert/strict';
import { existsSync, linkSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const MIB = 1024 * 1024;
const BLOCK = 4096;
const MAX_ENTRIES = 20;
const server = await startServer(test, {
  TROUPE_WORKSPACE_FILES_MB: '1',
  TROUPE_WORKSPACE_MAX_FILES: String(MAX_ENTRIES),
});

/** Returns an owner in a new workspace, and the path of its folder. */
async function newWorkspace(): Promise<{ client: Client; local: (path: string) => string }> {
  const { id } = await server.client.workspaces.create({ name: 'Apart' });
  const folder = join(server.dataDir, 'workspaces', id, 'files');
  mkdirSync(folder, { recursive: true });
  return {
    client: server.clientOf({ token: server.owner.token, workspaceId: id }),
    local: (path) => join(folder, path),
  };
}

test('files are stored up to the quota of bytes, and one byte more is refused', async () => {
  const { client, local } = await newWorkspace();
  await client.files.put('half', Buffer.alloc(MIB / 2));
  assert.equal(
    await refusalOf(client.files.put('more', Buffer.alloc(MIB / 2 + 1))),
    '507 file_quota_exceeded',
  );
  assert.equal(existsSync(local('more')), false);
  await client.files.put('rest', Buffer.alloc(MIB / 2));
  const refused = await problemOf(client.files.put('byte', Buffer.alloc(1)));
  assert.equal(refused.code, 'file_quota_exceeded');
  assert.match(refused.message, /1048576 of 1048576 bytes and 2 of 20 files and folders.* Delete files/);
  await client.files.put('empty', Buffer.alloc(0));
  const { files } = await client.usage();
  assert.deepEqual([files.bytes, files.entries, files.complete], [MIB, 3, true]);
  assert.deepEqual([files.maxBytes, files.maxEntries], [MIB, MAX_ENTRIES]);
});

test('a file of a full workspace can be replaced by a file of at most the same size, and deleting a file makes room', async () => {
  const { client } = await newWorkspace();
  await client.files.put('all', Buffer.alloc(MIB));
  await client.files.put('all', Buffer.alloc(MIB, 1));
  assert.equal(await refusalOf(client.files.put('all', Buffer.alloc(MIB + 1))), '507 file_quota_exceeded');
  assert.equal((await client.files.get('all')).bytes.byteLength, MIB);
  await client.files.put('all', Buffer.alloc(MIB - BLOCK));
  await client.files.put('other', Buffer.alloc(BLOCK));
  await client.files.delete('all');
  await client.files.put('new', Buffer.alloc(MIB - BLOCK));
});

test('files and folders can be made up to the quota of entries, and one more is refused', async () => {
  const { client, local } = await newWorkspace();
  for (let i = 0; i < MAX_ENTRIES - 3; i++) await client.files.put(`f${i}`, Buffer.alloc(0));
  assert.equal(await refusalOf(client.files.put('a/b/c/d', Buffer.alloc(0))), '507 file_quota_exceeded');
  rmSync(local('a'), { recursive: true, force: true });
  // On a busy machine the last count may have taken so long that the next one does not begin at
  // once.
  const accepted = () =>
    client.files.put('a/b/c', Buffer.alloc(0)).then(
      () => true,
      () => false,
    );
  await eventually('what was removed is counted no more', accepted);
  assert.equal(await refusalOf(client.files.put('one', Buffer.alloc(0))), '507 file_quota_exceeded');
  await client.files.delete('a/b/c');
  await client.files.delete('a/b/');
  await client.files.put('one', Buffer.alloc(0));
  await client.files.put('two', Buffer.alloc(0));
  assert.equal((await client.usage()).files.entries, MAX_ENTRIES);
});

test('simultaneous uploads cannot exceed the quota together', async () => {
  const { client } = await newWorkspace();
  const puts = Array.from({ length: 8 }, (_, i) => client.files.put(`f${i}`, Buffer.alloc(MIB / 4)));
  const { ok = 0, '507 file_quota_exceeded': refused = 0, ...rest } = await tally(puts);
  assert.deepEqual([ok + refused, rest], [8, {}]);
  assert.ok(ok <= 4, `${ok} were stored`);
  // A file that is stored while its workspace is counted may be in the figure twice until the next count.
  await eventually('the figure is that of the stored files', async () => {
    const { files } = await client.usage();
    return files.bytes === (ok * MIB) / 4;
  });
});

test('files of notebook code count towards the quota, beyond which no session opens and requests store nothing', async () => {
  const { client } = server;
  const notebook = await openNotebook(server, {
    write: 'open("large", "wb").write(bytes(1 << 20)); open("more", "wb").write(b"1")',
    free: 'import os; os.remove("large")',
  });
  assert.equal((await notebook.run(['write'])).status, 'completed');
  await eventually('a request notices it', () =>
    client.files.put('byte', Buffer.alloc(1)).then(
      () => false,
      () => true,
    ),
  );
  assert.equal(await refusalOf(client.files.put('byte', Buffer.alloc(1))), '507 file_quota_exceeded');
  assert.equal(await refusalOf(openNotebook(server, { a: '1' })), '507 file_quota_exceeded');
  const logged = server.log.find(({ msg }) => msg === 'the files of a workspace are beyond their quota');
  assert.equal(logged?.workspaceId, server.owner.workspaceId);
  assert.equal((await notebook.run(['free'])).status, 'completed', 'the open session goes on');
  // The pause after a count is ten times as long as the count, so a busy machine notices this after many seconds.
  const second = await eventually(
    'what was freed is counted no more',
    () => openNotebook(server, { a: '1' }).catch(() => undefined),
    60_000,
  );
  await client.files.put('byte', Buffer.alloc(1));
  await Promise.all([notebook.close(), second?.close()]);
});

test('holes in files and hard links take no space, and a name that is not text is counted', async () => {
  const { client, local } = await newWorkspace();
  writeFileSync(local('data'), Buffer.alloc(2 * BLOCK));
  linkSync(local('data'), local('second'));
  writeFileSync(Buffer.from(`${local('name')}\xff`, 'latin1'), Buffer.alloc(BLOCK));
  writeFileSync(local('hole'), '');
  truncateSync(local('hole'), MIB);
  const { files } = await client.usage();
  assert.deepEqual([files.bytes, files.entries], [3 * BLOCK, 4]);
});

test('a workspace with a folder too deep to be counted is full', async () => {
  const { client, local } = await newWorkspace();
  mkdirSync(local(Array.from({ length: 65 }, () => 'd').join('/')), { recursive: true });
  assert.equal((await client.usage()).files.complete, false);
  const refused = await problemOf(client.files.put('byte', Buffer.alloc(1)));
  assert.match(refused.message, /Not everything could be counted: folders are too deep/);
});

test('the usage of a workspace shows the size of its records by kind', async () => {
  const { client } = await newWorkspace();
  const notebook = await openNotebook({ client }, { a: 'import marimo as mo; mo.Html("x" * 100_000)' });
  await notebook.run(['a']);
  const { stored } = await client.usage();
  const { bytes, records, complete, countedAt, ...groups } = stored;
  assert.equal(complete, true);
  assert.ok(records > 5);
  assert.ok(groups.assets > 100_000, 'the large output');
  assert.equal(
    Object.values(groups).reduce((sum, group) => sum + group, 0),
    bytes,
  );
  assert.ok(Date.parse(countedAt) > Date.now() - 60_000);
  const stranger = server.clientOf(await server.stranger());
  assert.ok((await stranger.usage()).stored.bytes < 100_000, 'only of the own workspace');
});
