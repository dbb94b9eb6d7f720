import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startServer } from '#test/support/server-fixture.ts';

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
