import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { makePipe } from '#test/support/pipe.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test, { TROUPE_MAX_FILE_MB: '8' });
const { client } = server;
await client.files.put('seed.txt', Buffer.from('seed')); // makes the folder of the workspace

const local = (path: string) => join(server.filesDir, path);
const pathsOf = async (prefix?: string) => {
  const paths: string[] = [];
  for await (const { path } of client.files.each(prefix === undefined ? {} : { prefix })) paths.push(path);
  return paths;
};
const text = async (path: string) => Buffer.from((await client.files.get(path)).bytes).toString('utf8');

test('notebooks read uploaded files, and files that they write can be downloaded', async () => {
  await client.files.put('in/numbers.csv', Buffer.from('n\n1\n2\n'));
  const notebook = await openNotebook(server, {
    sum: 'total = sum(int(line) for line in open("in/numbers.csv").readlines()[1:])',
    write: 'import os; os.makedirs("out", exist_ok=True); open("out/total.txt", "w").write(str(total))',
  });
  const run = await notebook.run({ type: 'all' });
  assert.equal(run.status, 'completed');
  assert.equal(await text('out/total.txt'), '3');
});

test('a folder is listed by name, in pages, without the contents of its subfolders', async () => {
  for (const path of ['list/b.txt', 'list/a.txt', 'list/sub/deep.txt', 'list/ä ö.txt', 'list/ab.txt'])
    await client.files.put(path, Buffer.from(path));
  assert.deepEqual(await pathsOf('list/'), [
    'list/a.txt',
    'list/ab.txt',
    'list/b.txt',
    'list/sub/',
    'list/ä ö.txt',
  ]);
  assert.deepEqual(await pathsOf('list/a'), ['list/a.txt', 'list/ab.txt']);
  const { items, nextCursor } = await client.files.list({ prefix: 'list/', limit: 2 });
  assert.deepEqual(
    [items.map(({ path }) => path), nextCursor],
    [['list/a.txt', 'list/ab.txt'], 'list/ab.txt'],
  );
  const next = await client.files.list({ prefix: 'list/', limit: 100, after: nextCursor ?? '' });
  assert.deepEqual([next.items.length, next.nextCursor], [3, null]);
  const walked: string[] = [];
  for await (const { path } of client.files.walk('list/')) walked.push(path);
  assert.ok(walked.includes('list/sub/deep.txt'));
  assert.equal(await refusalOf(client.files.list({ prefix: 'nowhere/' })), '404 not_found');
  assert.equal(
    await refusalOf(client.files.list({ prefix: 'list/', after: 'other/x' })),
    '400 invalid_cursor',
  );
});

test('a file is replaced as a whole and can be deleted, and so can an empty folder', async () => {
  const first = await client.files.put('dir/one.txt', Buffer.from('long text'));
  assert.deepEqual([first.path, first.type, first.bytes], ['dir/one.txt', 'file', 9]);
  await client.files.put('dir/one.txt', Buffer.from('short'));
  assert.equal(await text('dir/one.txt'), 'short');
  assert.deepEqual(readdirSync(local('dir')), ['one.txt'], 'nothing else was left there');
  assert.equal(await refusalOf(client.files.delete('dir')), '409 not_a_file');
  assert.equal(await refusalOf(client.files.delete('dir/')), '409 not_a_file');
  await client.files.delete('dir/one.txt');
  assert.equal(await refusalOf(client.files.delete('dir/one.txt')), '404 not_found');
  await client.files.delete('dir/');
  assert.equal(existsSync(local('dir')), false);
});

test('with If-Match a file is replaced only in the state that was read, and of two such requests one is refused', async () => {
  const { etag } = await client.files.put('tagged.txt', Buffer.from('1'));
  const ifMatch = etag ?? '';
  const answers = await tally(
    ['2', '3', '4'].map((content) => client.files.put('tagged.txt', Buffer.from(content), { ifMatch })),
  );
  assert.deepEqual(answers, { ok: 1, '412 precondition_failed': 2 });
  assert.equal(
    await refusalOf(client.files.put('tagged.txt', Buffer.from('5'), { onlyNew: true })),
    '412 precondition_failed',
  );
  assert.equal(await refusalOf(client.files.delete('tagged.txt', { ifMatch })), '412 precondition_failed');
  assert.equal(
    await refusalOf(client.files.put('new/x.txt', Buffer.from('5'), { ifMatch: '*' })),
    '412 precondition_failed',
  );
  assert.equal(existsSync(local('new')), false, 'a refused request makes no folder');
  const read = await client.files.open('tagged.txt');
  await read.arrayBuffer();
  const again = await client.files.open('tagged.txt', { ifNoneMatch: read.headers.get('etag') ?? '' });
  assert.equal(again.status, 304);
});

test('a large file arrives whole and in ranges, and HEAD returns its length', async () => {
  const content = Buffer.alloc(5 * 1024 * 1024 + 17, 'A horse, a horse! ');
  await client.files.put('large.bin', content);
  const { bytes } = await client.files.get('large.bin');
  assert.equal(hash(bytes), hash(content));
  const range = await client.files.open('large.bin', { headers: { range: 'bytes=1000000-3000000' } });
  assert.deepEqual(
    [range.status, range.headers.get('content-range')],
    [206, `bytes 1000000-3000000/${content.length}`],
  );
  assert.equal(hash(new Uint8Array(await range.arrayBuffer())), hash(content.subarray(1_000_000, 3_000_001)));
  const head = await server.request('HEAD', '/api/v3/files/large.bin');
  assert.deepEqual([head.status, head.headers['content-length']], [200, String(content.length)]);
  const beyond = await server.request('GET', '/api/v3/files/large.bin', {
    headers: { range: 'bytes=9000000-' },
  });
  assert.equal(beyond.status, 416);
  assert.equal((await client.files.put('empty', Buffer.alloc(0))).bytes, 0);
  assert.equal((await client.files.get('empty')).bytes.length, 0);
});

test('a slow client gets a large file completely', async () => {
  const content = Buffer.alloc(7 * 1024 * 1024, 'O brave new world ');
  await client.files.put('slow.bin', content);
  const socket = ask('GET', 'slow.bin');
  const digest = createHash('sha256');
  let [head, size] = ['', 0];
  for await (const piece of socket as AsyncIterable<Buffer>) {
    const body = head === '' ? piece.subarray(piece.indexOf('\r\n\r\n') + 4) : piece;
    if (head === '') head = piece.toString('latin1');
    digest.update(body);
    size += body.length;
    await new Promise((resolve) => setImmediate(resolve)); // reads no more than this in the meantime
    if (size === content.length) break;
  }
  assert.equal(digest.digest('hex'), hash(content));
});

test('a body without a length is stored, a body that is too large is refused, and a body that breaks off leaves nothing', async () => {
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let i = 0; i < 20; i++) controller.enqueue(Buffer.alloc(100_000, 65 + i));
      controller.close();
    },
  });
  assert.equal((await client.files.put('streamed.bin', stream)).bytes, 2_000_000);
  const most = Buffer.alloc(8 * 1024 * 1024);
  assert.equal((await client.files.put('most.bin', most)).bytes, most.length);
  const nine = Buffer.alloc(most.length + 1);
  assert.equal(await refusalOf(client.files.put('nine.bin', nine)), '413 body_too_large');
  const endless = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let i = 0; i < 9; i++) controller.enqueue(Buffer.alloc(1024 * 1024));
      controller.close();
    },
  });
  assert.equal(await refusalOf(client.files.put('endless.bin', endless)), '413 body_too_large');
  mkdirSync(local('half'), { recursive: true });
  await breakOff('half/file.bin');
  await eventually('the partial file is removed', () => readdirSync(local('half')).length === 0);
  assert.equal(existsSync(local('nine.bin')) || existsSync(local('endless.bin')), false);
});

test('paths that lead elsewhere, or that some programs cannot write, are refused', async () => {
  for (const path of [
    '..%2fx',
    '%2e%2e/x',
    'a/../../x',
    'a//b',
    '%2fetc/passwd',
    'a%00b',
    'a%5cb',
    './a',
    'a/.',
    'x%0ay',
    '.troupe-upload-1',
    'a'.repeat(256),
    `${'a/'.repeat(40)}b`,
    '%ff%',
  ]) {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status } = await server.request(
        method,
        `/api/v3/files/${path}`,
        method === 'PUT' ? { body: 'x' } : {},
      );
      assert.ok(status === 400 || status === 404, `${method} ${path}: ${status}`);
    }
  }
  for (const prefix of ['../', '/etc/', 'a/../', 'a//', 'a%00/']) {
    assert.equal((await server.request('GET', `/api/v3/files?prefix=${prefix}`)).status, 400, prefix);
  }
});

test('the longest path and name are stored, and one more character is refused', async () => {
  const deepest = `${'d/'.repeat(31)}f`;
  const name = `${'n'.repeat(253)}ä`; // 255 bytes
  const longest = `${`${'p'.repeat(203)}/`.repeat(5)}last`; // 1024 characters
  for (const path of [deepest, name, longest]) {
    assert.equal((await client.files.put(path, Buffer.from('x'))).path, path);
    assert.equal(await text(path), 'x');
  }
  for (const path of [`d/${deepest}`, `${name}n`, `${longest}x`])
    assert.equal(await refusalOf(client.files.put(path, Buffer.from('x'))), '400 invalid_request', path);
});

test('deleting a file is in the audit, with its user', async () => {
  await client.files.put('audited.txt', Buffer.from('x'));
  await client.files.delete('audited.txt');
  const { items } = await client.audit({ action: 'file.delete' });
  assert.deepEqual(
    items.filter(({ target }) => target === 'audited.txt').map(({ outcome }) => outcome),
    ['done'],
  );
});

test('links are not followed, and no request waits for a pipe or a socket', async () => {
  mkdirSync(local('odd'), { recursive: true });
  const outside = join(server.dataDir, 'outside');
  mkdirSync(outside, { recursive: true });
  writeFileSync(join(outside, 'secret'), 'secret');
  symlinkSync(outside, local('odd/folder'));
  symlinkSync(join(outside, 'secret'), local('odd/link'));
  makePipe(local('odd/pipe'));
  const socket = createServer().listen(local('odd/socket'));
  await new Promise((resolve) => socket.once('listening', resolve));
  test.after(() => socket.close());
  for (const name of ['link', 'pipe', 'socket', 'folder/secret'])
    assert.match(await refusalOf(client.files.get(`odd/${name}`)), /^40[49] /, name);
  assert.equal(await refusalOf(client.files.put('odd/folder/new', Buffer.from('x'))), '409 not_a_file');
  assert.equal(await refusalOf(client.files.list({ prefix: 'odd/folder/' })), '404 not_found');
  assert.deepEqual(await pathsOf('odd/'), []);
  await client.files.put('odd/link', Buffer.from('mine'));
  await client.files.put('odd/pipe', Buffer.from('mine'));
  await client.files.delete('odd/folder');
  assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'secret');
  assert.deepEqual([await text('odd/link'), await text('odd/pipe')], ['mine', 'mine']);
  assert.deepEqual(readdirSync(outside), ['secret']);
});

test('viewers read but cannot write, and every workspace has its own files', async () => {
  await client.members.create({ userId: 'vera', role: 'viewer' });
  const { token } = await client.accessTokens.create({
    name: 'v',
    userId: 'vera',
    scopes: ['workspaceRuntime:connect'],
  });
  const viewer = server.clientOf({ token, workspaceId: server.owner.workspaceId });
  assert.equal(Buffer.from((await viewer.files.get('seed.txt')).bytes).toString(), 'seed');
  assert.equal(await refusalOf(viewer.files.put('seed.txt', Buffer.from('x'))), '403 role_too_low');
  assert.equal(await refusalOf(viewer.files.delete('seed.txt')), '403 role_too_low');
  const elsewhere = server.clientOf(await server.stranger());
  assert.deepEqual((await elsewhere.files.list()).items, []);
  assert.equal(await refusalOf(elsewhere.files.get('seed.txt')), '404 not_found');
});

test('a browser that opens a file runs no scripts in the file', async () => {
  await client.files.put('page.html', Buffer.from('<script>alert(1)</script>'));
  const { headers } = await server.request('GET', '/api/v3/files/page.html');
  assert.match(String(headers['content-disposition']), /^attachment; filename="page.html"/);
  assert.equal(headers['content-security-policy'], "sandbox; default-src 'none'");
});

test('the download of a file that becomes shorter meanwhile does not look complete', async () => {
  await client.files.put('shrinking.bin', Buffer.alloc(7 * 1024 * 1024));
  const socket = ask('GET', 'shrinking.bin');
  await new Promise((resolve) => socket.once('readable', resolve));
  truncateSync(local('shrinking.bin'), 10);
  let size = 0;
  for await (const piece of socket as AsyncIterable<Buffer>) size += piece.length;
  assert.ok(size < 7 * 1024 * 1024, 'the connection ended before the announced length');
});

function hash(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Sends half of a body and leaves, once the server has begun to store it. */
async function breakOff(path: string): Promise<void> {
  const socket = ask('PUT', path, 'content-length: 100000\r\n');
  socket.write(Buffer.alloc(50_000));
  await eventually('a partial file is there', () => readdirSync(local('half')).length === 1);
  socket.destroy();
}

/** Sends the head of a request. Only the caller reads the response, if anybody does. */
function ask(method: string, path: string, more = ''): Socket {
  const { hostname, port } = new URL(server.baseUrl);
  const { token, workspaceId } = server.owner;
  const socket = connect(Number(port), hostname);
  socket.pause();
  socket.write(
    `${method} /api/v3/files/${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\nservice-workspace-id: ${workspaceId}\r\n${more}\r\n`,
  );
  return socket;
}
