// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { ORDINARY_UID } from './attacked-server.ts';

const ROUNDS = 400;

/** Exchanges a folder, a link to elsewhere and a file under the same names, as fast as it can, until it is killed. */
const SWAPPER = `
const fs = require('node:fs');
const [files, outside] = process.argv.slice(1);
process.chdir(files);
const attempt = (work) => { try { work(); } catch {} };
for (let n = 0; ; n++) {
  attempt(() => fs.renameSync('way', 'aside'));
  attempt(() => fs.symlinkSync(n % 2 ? outside : '../../../outside', 'way'));
  attempt(() => fs.unlinkSync('way'));
  attempt(() => fs.writeFileSync('way', 'file'));
  attempt(() => fs.unlinkSync('way'));
  attempt(() => fs.renameSync('aside', 'way'));
  attempt(() => fs.renameSync('way/name', 'way/other'));
  attempt(() => fs.symlinkSync(outside + '/name', 'way/name'));
  attempt(() => fs.renameSync('way/other', 'way/name'));
}`;

test('no request leaves the folder while notebook code exchanges folders and links under it', async (t) => {
  const server = await startServer(t);
  const { client } = server;
  await client.files.put('way/name', Buffer.from('inside'));
  const outside = join(server.dataDir, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'name'), 'secret');
  const swapper = spawn(process.execPath, ['-e', SWAPPER, server.filesDir, outside], { stdio: 'ignore' });
  const ended = new Promise((resolve) => swapper.once('close', resolve));
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await Promise.all([
        server.request('GET', '/api/v3/files/way/name'),
        server.request('PUT', '/api/v3/files/way/name', { body: 'inside' }),
        server.request('PUT', `/api/v3/files/way/new-${round % 3}`, { body: 'inside' }),
        server.request('DELETE', `/api/v3/files/way/new-${round % 3}`),
        server.request('GET', '/api/v3/files?prefix=way/'),
      ]);
      for (const { status, text } of answers) {
        assert.ok(status < 500, text);
        assert.ok(!text.includes('secret'), text);
        note(String(status));
      }
      assert.deepEqual(readdirSync(outside), ['name'], 'nothing was made, moved or deleted outside');
      assert.equal(readFileSync(join(outside, 'name'), 'utf8'), 'secret');
    }
  } finally {
    swapper.kill('SIGKILL');
    await ended;
  }
  assert.ok((seen.get('200') ?? 0) > 0 && seen.size > 2, `the requests met every state: ${[...seen.keys()]}`);
});

/** Runs as root only: another server cannot give files away. */
const KERNEL_USERS = process.getuid?.() === 0 ? [{}, { TROUPE_KERNEL_UID: String(ORDINARY_UID) }] : [{}];

for (const settings of KERNEL_USERS) {
  const whose = 'TROUPE_KERNEL_UID' in settings ? 'another user' : "the server's user";
  test(`kernels of ${whose} change and delete files that requests stored, and requests change and delete files of kernels`, async (t) => {
    const server = await startServer(t, settings);
    const { client } = server;
    await client.files.put('before/start.txt', Buffer.from('1'));
    const notebook = await openNotebook(server, {
      first: 'open("before/start.txt", "a").write("2"); open("before/kernel.txt", "w").write("3")',
      second: [
        'import os',
        'open("new/folder/later.txt", "a").write("5")',
        'os.unlink("new/folder/gone.txt")',
        'os.rmdir("empty")',
        'open("before/kernel.txt", "a").write("6")',
      ].join('\n'),
    });
    assert.equal((await notebook.run({ type: 'cells', cells: [{ cellId: 'first' }] })).status, 'completed');
    await client.files.put('new/folder/later.txt', Buffer.from('4'));
    await client.files.put('new/folder/gone.txt', Buffer.from('4'));
    await client.files.put('empty/x', Buffer.from('4'));
    await client.files.delete('empty/x');
    await client.files.put('before/kernel.txt', Buffer.from('replaced'));
    const { status, error } = await notebook.run({ type: 'cells', cells: [{ cellId: 'second' }] });
    assert.equal(status, 'completed', JSON.stringify(error));
    const text = async (path: string) => Buffer.from((await client.files.get(path)).bytes).toString('utf8');
    assert.deepEqual(
      [await text('before/start.txt'), await text('new/folder/later.txt'), await text('before/kernel.txt')],
      ['12', '45', 'replaced6'],
    );
    await client.files.delete('before/kernel.txt');
  });
}
