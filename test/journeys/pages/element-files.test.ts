/** Files that pages send to elements of notebooks, by the requests of a page. The pages in Chromium are in page-element-files.test.ts. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { MAX_REMOVED_FILES } from '#src/workspace/files/element-files.ts';
import { callCode } from '#test/support/code-call.ts';
import {
  beginElementFile,
  elementFilesIn,
  ELEMENT_FILES as HIDDEN,
  sendElementFile as send,
  sentElementFile as sent,
} from '#test/support/element-files.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const MIB = 1024 * 1024;
const server = await startServer(test, { TROUPE_MAX_FILE_MB: '3', TROUPE_WORKSPACE_FILES_MB: '8' });
const { client, baseUrl } = server;
const { notebookSessions } = client;

const CELLS = {
  imports: 'import marimo as mo',
  element: 'f = mo.ui.file(multiple=True)\nf',
  shown:
    'import hashlib\nprint([(one.name, len(one.contents), hashlib.sha256(one.contents).hexdigest()) for one in f.value])',
};
const ELEMENT = 'element-0';
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

interface Opened {
  readonly notebook: OpenNotebook;
  readonly page: NotebookPageClient;
}

async function open(codes: Readonly<Record<string, string>> = CELLS): Promise<Opened> {
  const notebook = await openNotebook(server, codes);
  await notebook.run([]);
  return { notebook, page: await NotebookPageClient.open(client, baseUrl, notebook.id) };
}

const nothingLeft = () => eventually('no file is left', () => elementFilesIn(server).length === 0);

const set = (notebook: OpenNotebook, value: unknown) =>
  notebookSessions.setUiValues(notebook.id, { values: { [ELEMENT]: value } });

test('the kernel gets the name and the bytes of a file that a page sends, and the file is then removed', async () => {
  const { notebook, page } = await open();
  const [large, empty] = [Uint8Array.from(randomBytes(2 * MIB + 1)), new Uint8Array(0)];
  const value = [
    ['größe.bin', await sent(page, large)],
    ['empty', await sent(page, empty)],
    ['small', Buffer.from('in the value').toString('base64')],
  ];
  assert.equal(elementFilesIn(server).length, 3, 'a folder and two files');
  const { status, failures } = await set(notebook, value);
  assert.deepEqual([status, failures], ['completed', []]);
  const { stdout } = await callCode(
    client,
    notebook.id,
    'import hashlib\nprint([(f.name(i), len(f.contents(i)), hashlib.sha256(f.contents(i)).hexdigest()) for i in range(3)])',
  );
  const small = Buffer.from('in the value');
  const expected = [['größe.bin', large] as const, ['empty', empty] as const, ['small', small] as const].map(
    ([name, bytes]) => `('${name}', ${bytes.length}, '${sha256(bytes)}')`,
  );
  assert.equal(stdout, `[${expected.join(', ')}]\n`);
  assert.deepEqual(elementFilesIn(server), [notebook.id]);
  await notebook.close();
  await nothingLeft();
});

test('while the notebook has a file, a value that names the file may be set again, as a form does', async () => {
  const { notebook, page } = await open();
  const value = [['a', await sent(page, Buffer.from('abc'))]];
  assert.deepEqual((await set(notebook, value)).failures, []);
  assert.deepEqual((await set(notebook, value)).failures, []);
  assert.equal((await callCode(client, notebook.id, 'print(f.contents())')).stdout, "b'abc'\n");
  await notebook.close();
});

test('a file of the largest size is accepted, and a file with one byte more is refused and leaves nothing', async () => {
  const { notebook, page } = await open();
  await sent(page, Buffer.alloc(3 * MIB));
  const before = elementFilesIn(server);
  const refused = await send(page, Buffer.alloc(3 * MIB + 1));
  assert.equal(refused.status, 413);
  assert.deepEqual(elementFilesIn(server), before);
  await notebook.close();
  await nothingLeft();
});

test('files for elements count towards the quota of the workspace until the kernel has read them', async () => {
  const { notebook, page } = await open();
  const first = await sent(page, Buffer.alloc(3 * MIB));
  await sent(page, Buffer.alloc(3 * MIB));
  const refused = await send(page, Buffer.alloc(3 * MIB));
  assert.equal(refused.status, 507, await refused.clone().text());
  assert.match(await refused.text(), /file_quota_exceeded/);
  await set(notebook, [['first', first]]);
  await eventually('a third file has room', async () => (await send(page, Buffer.alloc(3 * MIB))).ok);
  await notebook.close();
  await nothingLeft();
  await eventually('the usage is that of the files', async () => {
    const { files } = await client.usage();
    return files.bytes < MIB;
  });
});

test('an upload that is cut off leaves no file', async () => {
  const { notebook, page } = await open();
  const socket = await beginElementFile(server, page, MIB / 2);
  socket.destroy();
  await eventually('the part is gone', () => elementFilesIn(server).length <= 1);
  await notebook.close();
  await nothingLeft();
});

test('the files of a session are removed when its kernel is restarted, and a value that names such a file is refused with a sentence', async () => {
  const { notebook, page } = await open();
  const name = await sent(page, Buffer.from('abc'));
  await page.do('kernel/restart_session');
  await nothingLeft();
  await notebookSessions.waitUntilReady(notebook.id);
  await notebook.run([]);
  await using watching = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await watching.follow();
  const { failures } = await set(notebook, [['report.csv', name]]);
  const sentence = 'The uploaded file report.csv is no longer there. Upload it again.';
  assert.deepEqual(
    failures.map(({ reason }) => reason),
    [sentence],
  );
  await watching.next(
    ({ op, cell_id, console }) =>
      op === 'cell-op' && cell_id === 'element' && JSON.stringify(console).includes(sentence),
  );
  assert.doesNotMatch(JSON.stringify(watching.messages), /Traceback/);
  assert.equal((await callCode(client, notebook.id, 'print(f.value)')).stdout, '()\n');
  await notebook.close();
});

test('a page with the access view cannot send files, and a page with the access interact can', async () => {
  const { notebook } = await open();
  const viewer = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  const refused = await send(viewer, Buffer.from('abc'));
  assert.equal(refused.status, 403);
  assert.equal((await viewer.send('element-files/discard', { ids: [] })).status, 403);
  const stranger = await fetch(`${viewer.address}api/element-files`, { method: 'POST', body: 'abc' });
  assert.equal(stranger.status, 401);
  assert.deepEqual(elementFilesIn(server), []);
  const user = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'interact' });
  const value = await sent(user, Buffer.from('abc'));
  assert.deepEqual((await set(notebook, [['a', value]])).failures, []);
  await notebook.close();
  assert.equal((await send(user, Buffer.from('abc'))).status, 409, 'the session is closed');
  await nothingLeft();
});

test('a value reaches only files of its own session', async () => {
  const [one, two] = [await open(), await open()];
  const others = await sent(two.page, Buffer.from('of the other session'));
  writeFileSync(join(server.filesDir, 'secret.txt'), 'secret');
  const id = 'a'.repeat(32);
  const folder = join(server.filesDir, HIDDEN, one.notebook.id);
  mkdirSync(folder, { recursive: true });
  symlinkSync('../../secret.txt', join(folder, id));
  for (const name of [
    others,
    `upload:${id}`,
    'upload:../../secret.txt',
    `upload:${'A'.repeat(32)}`,
    'upload:',
  ]) {
    const { failures } = await set(one.notebook, [['x', name]]);
    const isMarked = /^upload:[0-9a-f]{32}$/.test(name);
    assert.equal(failures.length > 0 || !isMarked, true, name);
    const { stdout } = await callCode(client, one.notebook.id, 'print([one.contents for one in f.value])');
    assert.doesNotMatch(stdout, /secret|session/, name);
  }
  // A link in place of the folder is followed by neither side.
  renameSync(folder, `${folder}-moved`);
  symlinkSync(join('..', HIDDEN, two.notebook.id), folder);
  assert.equal((await set(one.notebook, [['x', others]])).failures.length, 1);
  assert.equal((await send(one.page, Buffer.from('abc'))).status, 409);
  assert.equal((await callCode(client, two.notebook.id, 'print(f.value)')).stdout, '()\n');
  assert.deepEqual((await set(two.notebook, [['x', others]])).failures, []);
  await Promise.all([one.notebook.close(), two.notebook.close()]);
  rmSync(join(server.filesDir, HIDDEN), { recursive: true });
});

test('requests for files can neither name nor list the hidden folder', async () => {
  const { notebook, page } = await open();
  await sent(page, Buffer.from('abc'));
  const path = `/api/v3/files/${HIDDEN}/${notebook.id}/x`;
  for (const [method, body] of [['GET'], ['PUT', 'x'], ['DELETE']] as const)
    assert.equal((await server.request(method, path, { body })).status, 400, method);
  const { items } = await client.files.list();
  assert.ok(!items.some((entry) => entry.path.startsWith(HIDDEN)));
  await notebook.close();
});

test('a page removes only files that no value names', async () => {
  const { notebook, page } = await open();
  const [dropped, kept] = [await sent(page, Buffer.from('a')), await sent(page, Buffer.from('b'))];
  const ids = [dropped.slice('upload:'.length), '../x', 'b'.repeat(32)];
  await page.do('element-files/discard', { ids });
  const others = Array.from({ length: MAX_REMOVED_FILES }, (_, at) => String(at));
  await page.do('element-files/discard', { ids: others });
  await assert.rejects(page.do('element-files/discard', { ids: [...others, 'one more'] }), /400/);
  assert.deepEqual((await set(notebook, [['b', kept]])).failures, []);
  assert.equal((await set(notebook, [['a', dropped]])).failures.length, 1);
  await notebook.close();
  await nothingLeft();
});

test('files that a page has sent before the end of the server are removed at its next start', async (t) => {
  const first = await startServer(t);
  const notebook = await openNotebook(first, CELLS);
  const folder = join(first.filesDir, HIDDEN, notebook.id);
  mkdirSync(folder, { recursive: true });
  for (const name of ['a'.repeat(32), '.troupe-upload-of-the-killed-server'])
    writeFileSync(join(folder, name), 'x');
  const second = await first.restart();
  await eventually('no file and no folder is left', () => !existsSync(join(second.filesDir, HIDDEN)));
});
