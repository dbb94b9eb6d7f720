/** The panel for files of a notebook's page. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test, { TROUPE_MAX_FILE_MB: '1' });
const { client, baseUrl } = server;
await client.files.put('seed.txt', Buffer.from('seed')); // makes the folder of the workspace
const notebook = await openNotebook(server, { a: '1' });
const page = await NotebookPageClient.open(client, baseUrl, notebook.id);
const local = (path: string) => join(server.filesDir, path);

interface Info {
  readonly path: string;
  readonly isDirectory: boolean;
  readonly size: number | null;
}
interface Answer {
  readonly success?: boolean;
  readonly message?: string;
  readonly files?: readonly Info[];
  readonly contents?: string | null;
  readonly mimeType?: string | null;
  readonly isBase64?: boolean;
  readonly isTooLarge?: boolean;
  readonly info?: Info;
}

async function ask(path: string, body: unknown): Promise<Answer> {
  const response = await page.send(`files/${path}`, body);
  assert.equal(response.status, 200, `${path} ${JSON.stringify(body)}`);
  return (await response.json()) as Answer;
}
const pathsOf = ({ files = [] }: Answer) => files.map(({ path }) => path);
/** Returns the paths in a folder without `.config`, which kernels make. */
const list = async (path: string | null) =>
  pathsOf(await ask('list_files', { path })).filter((one) => one !== '/.config');

/** Sends the form with which marimo's page creates a file or a folder. */
function upload(
  { path, name, type = 'file' }: { readonly path: string; readonly name: string; readonly type?: string },
  content?: string | Uint8Array<ArrayBuffer>,
  from: NotebookPageClient = page,
): Promise<Response> {
  const form = new FormData();
  form.append('path', path);
  form.append('type', type);
  form.append('name', name);
  if (content !== undefined) form.append('file', new Blob([content]), name);
  return fetch(`${from.address}api/files/create`, {
    method: 'POST',
    headers: { authorization: `Bearer ${from.token}` },
    body: form,
  });
}
async function created(...[file, content]: Parameters<typeof upload>): Promise<Answer> {
  const response = await upload(file, content);
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Answer;
}

/** With a cost of the square of its length, a path of this length would take hours. */
const LONG_PATH = `a${'/'.repeat(1_000_000)}b`;

test('a path of a million slashes from a page is refused without delay', async () => {
  const requests: readonly (readonly [path: string, body: object])[] = [
    ['list_files', { path: LONG_PATH }],
    ['file_details', { path: LONG_PATH }],
    ['search', { path: LONG_PATH, query: 'a' }],
    ['update', { path: LONG_PATH, contents: '' }],
    ['delete', { path: LONG_PATH }],
    ['move', { path: LONG_PATH, newPath: '/b' }],
    ['copy', { path: '/seed.txt', newPath: LONG_PATH }],
  ];
  for (const [path, body] of requests) {
    const response = await page.send(`files/${path}`, body);
    assert.equal(response.status, 400, path);
    assert.match(await response.text(), /has more than 4096 characters/, path);
  }
  assert.deepEqual(await list(`${'/'.repeat(2000)}.${'/'.repeat(2000)}`), ['/seed.txt']);
});

test('a page lists, shows and finds the files that notebooks of the workspace have', async () => {
  for (const path of ['data/b.csv', 'data/a.csv', 'data/deep/er/sales.CSV', 'data/.hidden.csv', 'top.py'])
    await client.files.put(path, Buffer.from(`content of ${path}`));
  const headers = { authorization: `Bearer ${page.token}` };
  const roots = await (await fetch(`${page.address}api/files/roots`, { headers })).json();
  assert.deepEqual(roots, { roots: [{ path: '/', name: 'Files', isPrimary: true }] });
  for (const root of ['/', '', null]) assert.deepEqual(await list(root), ['/data', '/seed.txt', '/top.py']);
  assert.deepEqual(await list('/data'), ['/data/deep', '/data/a.csv', '/data/b.csv', '/data/.hidden.csv']);
  const { contents, mimeType, isBase64 } = await ask('file_details', { path: '/data/a.csv' });
  assert.deepEqual([contents, mimeType, isBase64], ['content of data/a.csv', 'text/csv', false]);
  await client.files.put('odd.bin', Buffer.from([0xff, 0xfe, 0]));
  const binary = await ask('file_details', { path: '/odd.bin' });
  assert.deepEqual([binary.contents, binary.isBase64], ['//4A', true]);
  const folder = await ask('file_details', { path: '/data' });
  assert.equal(folder.contents, null);
  const found = async (query: string, more: object = {}) => pathsOf(await ask('search', { query, ...more }));
  assert.deepEqual(await found('sales'), ['/data/deep/er/sales.CSV']);
  assert.deepEqual(await found('.csv', { includeHidden: false, path: '/data' }), [
    '/data/a.csv',
    '/data/b.csv',
    '/data/deep/er/sales.CSV',
  ]);
  assert.deepEqual(await found('e', { depth: 0, includeFiles: false, path: '/data' }), ['/data/deep']);
  assert.deepEqual(await found('e', { depth: 1, includeFiles: false, path: '/data' }), [
    '/data/deep/er',
    '/data/deep',
  ]);
  assert.deepEqual(await found(' '), []);
  assert.equal((await page.send('files/list_files', { path: '/nowhere' })).status, 404);
});

test('a page that may edit creates, writes, moves and deletes files, and the audit records each change', async () => {
  const { info } = await created({ path: '/', name: 'made', type: 'directory' });
  assert.deepEqual([info?.path, info?.isDirectory], ['/made', true]);
  assert.equal((await created({ path: '/made', name: 'numbers.txt' }, 'one\r\n--two')).success, true);
  assert.equal(readFileSync(local('made/numbers.txt'), 'utf8'), 'one\r\n--two');
  assert.equal((await created({ path: '/made/new/er', name: 'empty.txt' })).info?.size, 0);
  const taken = await created({ path: '/made', name: 'numbers.txt' }, 'other');
  assert.deepEqual([taken.success, taken.message], [false, 'There is something at this path already.']);
  assert.equal((await created({ path: '/', name: 'made', type: 'directory' })).success, false);
  assert.equal((await ask('update', { path: '/made/numbers.txt', contents: 'zwölf' })).info?.size, 6);
  assert.equal(readFileSync(local('made/numbers.txt'), 'utf8'), 'zwölf');
  assert.equal((await ask('update', { path: '/made/no.txt', contents: '' })).success, false);
  assert.equal((await ask('move', { path: '/made/numbers.txt', newPath: '/made/new/12.txt' })).success, true);
  const onto = await ask('move', { path: '/made/new/12.txt', newPath: '/seed.txt' });
  assert.deepEqual([onto.success, onto.message], [false, 'There is something at this path already.']);
  assert.equal((await ask('move', { path: '/made', newPath: '/made/new/made' })).success, false);
  assert.equal((await ask('move', { path: '/made/new', newPath: '/made/old' })).info?.path, '/made/old');
  assert.equal(readFileSync(local('made/old/12.txt'), 'utf8'), 'zwölf');
  const full = await ask('delete', { path: '/made' });
  assert.deepEqual([full.success, full.message], [false, 'The folder is not empty.']);
  for (const path of ['/made/old/12.txt', '/made/old/er/empty.txt', '/made/old/er', '/made/old', '/made'])
    assert.equal((await ask('delete', { path })).success, true, path);
  assert.equal(existsSync(local('made')), false);
  const { items } = await client.audit({ action: 'file.' });
  assert.deepEqual(
    items.map(({ action, target, detail }) => [action, target, detail]),
    [
      ['file.create', 'made/', null],
      ['file.create', 'made/numbers.txt', null],
      ['file.create', 'made/new/er/empty.txt', null],
      ['file.update', 'made/numbers.txt', null],
      ['file.move', 'made/numbers.txt', 'made/new/12.txt'],
      ['file.move', 'made/new', 'made/old'],
      ['file.delete', 'made/old/12.txt', null],
      ['file.delete', 'made/old/er/empty.txt', null],
      ['file.delete', 'made/old/er/', null],
      ['file.delete', 'made/old/', null],
      ['file.delete', 'made/', null],
    ],
  );
});

test('a page with the access view or interact reads files, but cannot change them', async () => {
  for (const access of ['view', 'interact'] as const) {
    await using other = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    assert.equal((await other.send('files/list_files', { path: '/' })).status, 200);
    assert.equal((await other.send('files/file_details', { path: '/seed.txt' })).status, 200);
    const forged = { path: '/seed.txt', contents: 'forged', newPath: '/forged.txt' };
    for (const path of ['update', 'delete', 'move', 'copy'])
      assert.equal((await other.send(`files/${path}`, forged)).status, 403, path);
    assert.equal((await upload({ path: '/', name: 'forged.txt' }, 'forged', other)).status, 403);
  }
  assert.equal(readFileSync(local('seed.txt'), 'utf8'), 'seed');
  assert.equal(existsSync(local('forged.txt')), false);
});

test('paths that lead out of the folder of the workspace are refused, and links are neither shown nor followed', async () => {
  writeFileSync(join(server.dataDir, 'secret.txt'), 'secret');
  symlinkSync(join(server.dataDir, 'secret.txt'), local('link.txt'));
  mkdirSync(local('inner'), { recursive: true });
  symlinkSync(server.dataDir, local('inner/out'));
  assert.ok(!(await list('/')).includes('/link.txt'));
  assert.deepEqual(pathsOf(await ask('search', { query: 'secret' })), []);
  for (const path of ['/link.txt', '/inner/out/secret.txt', '/inner/out'])
    assert.equal((await page.send('files/file_details', { path })).status, 404, path);
  for (const path of ['/../secret.txt', '/a/../../secret.txt', '/a//b', '/a\\b', '/a\0b', 1, null, {}]) {
    assert.equal((await page.send('files/file_details', { path })).status, 400, String(path));
    for (const [name, body] of [
      ['update', { path, contents: '' }],
      ['delete', { path }],
      ['move', { path: '/seed.txt', newPath: path }],
    ] as const) {
      const response = await page.send(`files/${name}`, body);
      const isRefused = response.status === 400 || ((await response.json()) as Answer).success === false;
      assert.ok(isRefused, `${name} ${String(path)}`);
    }
  }
  assert.equal((await created({ path: '/inner/out', name: 'x.txt' }, 'x')).success, false);
  for (const name of ['..', '.', '', 'a/b', 'x\ny']) {
    assert.equal((await created({ path: '/', name }, 'x')).success, false, name);
    assert.equal((await created({ path: '/', name, type: 'directory' })).success, false, name);
  }
  assert.equal(readFileSync(join(server.dataDir, 'secret.txt'), 'utf8'), 'secret');
  assert.equal(readFileSync(local('seed.txt'), 'utf8'), 'seed');
});

test('a file of 1 MiB is shown, 1000 entries are listed, 200 are found, and larger requests are refused', async () => {
  const MIB = 1024 * 1024;
  await client.files.put('large/one.txt', Buffer.alloc(MIB, 'x'));
  assert.equal(
    (await ask('file_details', { path: '/large/one.txt', maxBytes: 10 * MIB })).contents?.length,
    MIB,
  );
  writeFileSync(local('large/more.txt'), Buffer.alloc(MIB + 1, 'x'));
  const more = await ask('file_details', { path: '/large/more.txt', maxBytes: 10 * MIB });
  assert.deepEqual([more.isTooLarge, more.contents], [true, null]);
  const asked = await ask('file_details', { path: '/seed.txt', maxBytes: 4 });
  assert.equal(asked.contents, 'seed');
  assert.equal((await ask('file_details', { path: '/seed.txt', maxBytes: 3 })).isTooLarge, true);
  mkdirSync(local('many'), { recursive: true });
  for (let i = 0; i < 1001; i++) writeFileSync(local(`many/file-${i}`), '');
  assert.equal((await list('/many')).length, 1000);
  assert.equal((await ask('search', { query: 'file-', limit: 1000 })).files?.length, 200);
  assert.equal((await ask('search', { query: 'f'.repeat(255) })).files?.length, 0);
  assert.equal((await page.send('files/search', { query: 'f'.repeat(256) })).status, 400);
  const around = JSON.stringify({ path: '/seed.txt', contents: '' }).length;
  const updated = (length: number) =>
    page.send('files/update', { path: '/seed.txt', contents: 's'.repeat(length - around) });
  assert.equal((await updated(MIB + 1)).status, 413);
  assert.equal((await updated(MIB)).status, 200);
  await client.files.put('seed.txt', Buffer.from('seed'));
  const whole = await created({ path: '/large', name: 'whole.bin' }, new Uint8Array(MIB));
  assert.equal(whole.info?.size, MIB);
  assert.equal(
    (await upload({ path: '/large', name: 'too.bin' }, new Uint8Array(MIB + 64 * 1024))).status,
    413,
  );
  assert.equal(existsSync(local('large/too.bin')), false);
});

test('a search reads up to 20,000 names, beginning with the nearest folders', async () => {
  mkdirSync(local('wide/inner'), { recursive: true });
  writeFileSync(local('wide/inner/needle.txt'), '');
  for (let i = 0; i < 19_998; i++) writeFileSync(local(`wide/${i}`), '');
  const find = async () => pathsOf(await ask('search', { query: 'needle', path: '/wide' }));
  assert.deepEqual(await find(), ['/wide/inner/needle.txt'], 'it is the last of 20,000');
  writeFileSync(local('wide/one-more'), '');
  assert.deepEqual(await find(), []);
});

test('a malformed form creates no file', async () => {
  const headers = {
    authorization: `Bearer ${page.token}`,
    'content-type': 'multipart/form-data; boundary=b',
  };
  const part = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const fields = part('path', '/') + part('type', 'file') + part('name', 'broken.txt');
  const file = '--b\r\nContent-Disposition: form-data; name="file"; filename="broken.txt"\r\n\r\nhalf of it';
  const send = async (body: string, contentType = headers['content-type']) => {
    const response = await fetch(`${page.address}api/files/create`, {
      method: 'POST',
      headers: { ...headers, 'content-type': contentType },
      body,
    });
    return response.status === 200 ? ((await response.json()) as Answer).success : response.status;
  };
  for (const [body, answer] of [
    ['', 400],
    ['--b\r\n', 400],
    ['--c\r\n\r\n', 400],
    [fields, 400],
    [`${part('path', '/')}--b--\r\n`, 400],
    [fields + file, false],
    [`${part('name', 'n'.repeat(5000))}--b--\r\n`, 400],
    [`${part('x', '').repeat(11)}--b--\r\n`, 400],
  ] as const)
    assert.equal(await send(body), answer, body.slice(0, 200));
  assert.equal(await send(`${fields}${file}\r\n--b--\r\n`, 'text/plain'), 415);
  assert.equal(existsSync(local('broken.txt')), false);
  assert.equal(await send(`${fields}${file}\r\n--b--\r\n`), true);
  assert.equal(readFileSync(local('broken.txt'), 'utf8'), 'half of it');
});

const download = (path: string, headers: Readonly<Record<string, string>>, from = page) =>
  fetch(`${from.address}api/files/download?path=${encodeURIComponent(path)}`, { headers });

test('a page with any access downloads a file with its token in a header', async () => {
  await client.files.put('data/größe.html', Buffer.from('<b>x</b>'));
  for (const access of ['view', 'interact', 'edit'] as const) {
    await using other = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    const authorization = `Bearer ${other.token}`;
    const response = await download('/data/größe.html', { authorization }, other);
    assert.deepEqual([response.status, await response.text()], [200, '<b>x</b>']);
    const disposition = response.headers.get('content-disposition') ?? '';
    assert.match(disposition, /^attachment; .*filename\*=UTF-8''gr%C3%B6%C3%9Fe\.html$/);
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
    assert.equal(response.headers.get('cache-control'), 'no-store');
    for (const [path, status] of [
      ['/nowhere.txt', 404],
      ['/../secret.txt', 400],
      ['/link.txt', 409],
      ['/data', 409],
      ['/'.repeat(5000), 400],
    ] as const)
      assert.equal((await download(path, { authorization }, other)).status, status, path);
  }
});

test('an address of a download gives no file without the token in a header, and leaves the browser on the page', async () => {
  const address = `${page.address}api/files/download?path=%2Fseed.txt`;
  for (const [url, headers] of [
    [address, {}],
    [`${address}&access_token=${page.token}`, {}],
    [address, { cookie: page.cookie }],
    [address, { authorization: `Bearer ${page.token.slice(0, -2)}` }],
    [address, { authorization: `Bearer ${OWNER.token}` }],
  ] as const) {
    const response = await fetch(url, { headers });
    assert.deepEqual([response.status, await response.text()], [204, ''], url);
  }
});

test('a page that may edit copies a file of up to 1 MiB, and overwrites no other file', async () => {
  const copy = (path: string, newPath: unknown) => ask('copy', { path, newPath });
  const { info } = await copy('/seed.txt', '/copies/new/seed copy.txt');
  assert.deepEqual([info?.path, info?.size], ['/copies/new/seed copy.txt', 4]);
  assert.equal(readFileSync(local('copies/new/seed copy.txt'), 'utf8'), 'seed');
  writeFileSync(local('copies/whole.bin'), Buffer.alloc(1024 * 1024, 'x'));
  writeFileSync(local('copies/larger.bin'), Buffer.alloc(1024 * 1024 + 1, 'x'));
  writeFileSync(local('copies/empty.bin'), '');
  assert.equal((await copy('/copies/whole.bin', '/copies/whole copy.bin')).info?.size, 1024 * 1024);
  assert.ok(readFileSync(local('copies/whole.bin')).equals(readFileSync(local('copies/whole copy.bin'))));
  assert.equal((await copy('/copies/empty.bin', '/copies/empty copy.bin')).info?.size, 0);
  symlinkSync(join(server.dataDir, 'secret.txt'), local('copies/link.txt'));
  for (const [from, to, reason] of [
    ['/copies/larger.bin', '/copies/larger copy.bin', /limit for copies/],
    ['/copies', '/copies copy', /no folders/],
    ['/copies/link.txt', '/copies/taken.txt', /not found|No such/i],
    ['/nowhere.txt', '/copies/taken.txt', /not found|No such/i],
    ['/seed.txt', '/copies/whole.bin', /already/],
    ['/seed.txt', '/copies', /folder at this path/],
    ['/seed.txt', '/seed.txt', /already/],
    ['/seed.txt', '/inner/out/seed.txt', /not a folder/],
    ['/seed.txt', '/../seed.txt', /path/i],
  ] as const) {
    const refused = await copy(from, to);
    assert.equal(refused.success, false, `${from} to ${to}`);
    assert.match(refused.message ?? '', reason, `${from} to ${to}`);
  }
  assert.equal(existsSync(local('copies/larger copy.bin')), false);
  const { items } = await client.audit({ action: 'file.copy' });
  assert.deepEqual(
    items.map(({ target, detail }) => [target, detail]),
    [
      ['seed.txt', 'copies/new/seed copy.txt'],
      ['copies/whole.bin', 'copies/whole copy.bin'],
      ['copies/empty.bin', 'copies/empty copy.bin'],
    ],
  );
});

test('files stay out of reach once the session is closed', async () => {
  await notebook.close();
  assert.equal((await page.send('files/list_files', { path: '/' })).status, 409);
  assert.equal((await upload({ path: '/', name: 'late.txt' }, 'late')).status, 409);
  assert.equal((await download('/seed.txt', { authorization: `Bearer ${page.token}` })).status, 409);
});
