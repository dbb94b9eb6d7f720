/** The files of the folder `public`, to which outputs refer by relative addresses. */
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { cellOf, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { DRAWING, PICTURE, putPublicFiles } from '#test/support/public-files.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

await putPublicFiles(server);
await client.files.put('secret.txt', Buffer.from('a secret'));

const codeOf = ({ html }: NotebookPageClient) => /"publicCode":"([^"]+)"/.exec(html)?.[1] ?? '';
const filesOf = (page: NotebookPageClient) => `${page.address}public/${codeOf(page)}/`;

test('the address of a page gives access only to public files of the workspace, which run no script', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const folder = server.filesDir;
  symlinkSync(join(folder, 'secret.txt'), join(folder, 'public', 'link.txt'));
  symlinkSync(folder, join(folder, 'public', 'up'));
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  const files = filesOf(page);
  const dot = await fetch(`${files}dot.png`);
  assert.deepEqual([dot.status, Buffer.from(await dot.arrayBuffer())], [200, PICTURE]);
  assert.deepEqual(
    ['content-type', 'content-security-policy', 'x-content-type-options', 'cross-origin-resource-policy'].map(
      (name) => dot.headers.get(name),
    ),
    ['image/png', "sandbox; default-src 'none'", 'nosniff', 'cross-origin'],
  );
  const drawing = await fetch(`${files}in%20a%20folder/drawing.svg`);
  assert.deepEqual([drawing.status, await drawing.text()], [200, DRAWING]);
  const document = await fetch(`${files}page.html`);
  assert.match(document.headers.get('content-disposition') ?? '', /^attachment/);
  const part = await fetch(`${files}data.csv`, { headers: { range: 'bytes=0-2' } });
  assert.deepEqual([part.status, await part.text()], [206, 'x,y']);
  for (const path of [
    '..%2Fsecret.txt',
    'in%20a%20folder%2F..%2F..%2Fsecret.txt',
    'link.txt',
    'up/secret.txt',
    'none.png',
    '',
  ]) {
    const { status } = await fetch(files + path);
    assert.ok(status === 400 || status === 404 || status === 409, `${path}: ${status}`);
  }
  await notebook.close();
  assert.equal((await fetch(files.slice(0, -1))).status, 409, 'it is a folder');
  assert.equal((await fetch(`${files}dot.png`)).status, 409, 'the session is closed');
});

test('the credential for public files is valid for one notebook only, is not a token, and is in no answer', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const other = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const code = codeOf(page);
  assert.notEqual(code, page.token);
  const elsewhere = `${baseUrl}/n/${other.id}/public/${code}/dot.png`;
  const forged = `${page.address}public/${page.token}/dot.png`;
  for (const address of [elsewhere, forged, `${filesOf(page).slice(0, -3)}AA/dot.png`]) {
    const response = await fetch(address);
    const answer = await response.text();
    assert.equal(response.status, 401, answer);
    assert.equal(answer.includes(code) || answer.includes(page.token), false);
  }
  const missing = await fetch(`${filesOf(page)}none.png`);
  assert.deepEqual([missing.status, (await missing.text()).includes(code)], [404, false]);
  const headers = { authorization: `Bearer ${code}` };
  assert.equal((await fetch(`${page.address}api/files/download?path=/secret.txt`, { headers })).status, 204);
  assert.equal((await fetch(`${baseUrl}/api/v3/me`, { headers })).status, 401);
  await notebook.close();
  await other.close();
});

test('the credential in the address of a picture is valid for five minutes, and the page gets a new credential', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  const endOf = (code: string) =>
    JSON.parse(Buffer.from(code.split('.')[2] ?? '', 'base64url').toString()).expiresAtMs as number;
  const renew = (token: string) =>
    fetch(`${page.address}api/public-code`, { headers: { authorization: `Bearer ${token}` } });
  const { code } = (await (await renew(page.token)).json()) as { code: string };
  assert.notEqual(code, codeOf(page));
  for (const one of [codeOf(page), code]) assert.ok(endOf(one) <= Date.now() + 300_000);
  assert.equal((await fetch(`${page.address}public/${code}/dot.png`)).status, 200);
  assert.equal((await renew(code)).status, 401, 'it does not renew itself');
  await notebook.close();
});

test('the address of a link has no credential: a browser with the cookie of the page gets the file, and other browsers get the notebook', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const other = await openNotebook(server, { a: '1' });
  const cookieOf = async (id: string) => {
    const { url } = await client.notebookSessions.page(id);
    const { headers } = await fetch(baseUrl + url, { redirect: 'manual' });
    return (headers.get('set-cookie') ?? '').split(';', 1)[0] ?? '';
  };
  const cookie = await cookieOf(notebook.id);
  const read = (path: string, headers: Readonly<Record<string, string>>) =>
    fetch(`${baseUrl}/n/${notebook.id}/page/public/${path}`, { redirect: 'manual', headers });
  const dot = await read('dot.png', { cookie });
  assert.deepEqual([dot.status, Buffer.from(await dot.arrayBuffer())], [200, PICTURE]);
  assert.equal(dot.headers.get('content-security-policy'), "sandbox; default-src 'none'");
  const drawing = await read('in%20a%20folder/drawing.svg', { cookie });
  assert.equal(await drawing.text(), DRAWING);
  const document = await read('page.html', { cookie });
  assert.match(document.headers.get('content-disposition') ?? '', /^attachment/);
  for (const path of ['..%2Fsecret.txt', 'link.txt', 'none.png', '']) {
    const { status } = await read(path, { cookie });
    assert.ok(status === 400 || status === 404 || status === 409, `${path}: ${status}`);
  }
  for (const headers of [{}, { cookie: await cookieOf(other.id) }]) {
    assert.equal((await read('dot.png', headers)).status, 401);
    for (const path of ['in%20a%20folder/drawing.svg', 'in%20a%20folder%2Fdrawing.svg']) {
      const led = await read(path, { ...headers, accept: 'text/html' });
      const target = new URL(led.headers.get('location') ?? '', led.url).href;
      assert.deepEqual([led.status, target], [303, `${baseUrl}/n/${notebook.id}/`]);
    }
  }
  await notebook.close();
  await other.close();
});

const CELLS = {
  imports: 'import marimo as mo',
  image: 'mo.Html(\'<img src="public/dot.png">\')',
  markdown: 'mo.md("![](public/in a folder/drawing.svg)")'.replace('in a folder', 'in%20a%20folder'),
  list: 'mo.Html(\'<img srcset="public/none.png 9x, public/dot.png 1x">\')',
  style: 'mo.Html(\'<p style="width: 9px; height: 9px; background-image: url(public/dot.png)"></p>\')',
  sheet:
    'mo.Html("<style>.troupe-dotted { background-image: url(./public/dot.png) }</style><p class=troupe-dotted>dotted</p>")',
  nested: 'mo.accordion({"open": mo.Html("<img src=\'./public/dot.png\'>")})',
};

test('in a browser, outputs and their styles show public files, also after a reload, and scripts can fetch public files', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, CELLS);
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'imports').waitFor();
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed');
  const isShown = (cell: string) =>
    eventually(`the picture of ${cell} is shown`, async () => {
      const pictures = outputOf(page, cell).locator('img');
      if ((await pictures.count()) === 0) return false;
      return (await pictures.first().evaluate((picture) => Object(picture).naturalWidth as number)) > 0;
    });
  await isShown('image');
  await isShown('markdown');
  await isShown('list');
  await page.reload();
  await isShown('list');
  await isShown('image');
  await isShown('markdown');
  await outputOf(page, 'nested').getByText('open').first().click();
  await isShown('nested');
  const frame = page.frames().find((one) => one.url().endsWith('/page/'));
  const data = await frame?.evaluate("fetch('public/data.csv').then((response) => response.text())");
  assert.equal(data, 'x,y\n1,2\n');
  for (const [cell, selector] of [
    ['style', 'p'],
    ['sheet', '.troupe-dotted'],
  ] as const)
    await eventually(`the picture in the styles of ${cell} is loaded`, () =>
      outputOf(page, cell).locator(selector).first().evaluate(hasBackground),
    );
  await notebook.close();
});

/** Resolves with whether the background of an element is a picture that can be loaded. */
const hasBackground = (element: unknown) => {
  const { backgroundImage } = Object(globalThis).getComputedStyle(element);
  const [, url = ''] = /^url\("(.*)"\)$/.exec(String(backgroundImage)) ?? [];
  const picture = new (Object(globalThis).Image)();
  picture.src = url;
  return picture.decode().then(
    () => true,
    () => false,
  ) as Promise<boolean>;
};

test('an exported page contains public files, and no file outside of their folder', async () => {
  const notebook = await openNotebook(server, {
    ...CELLS,
    other:
      'mo.Html(\'<img src="public/../secret.txt"><img src="public/none.png"><img src="public/link.txt">\')',
  });
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed');
  const { bytes } = await client.notebooks.export(notebook.id, 'html');
  const html = Buffer.from(bytes).toString();
  const dot = `data:image/png;base64,${PICTURE.toString('base64')}`;
  assert.ok(html.includes(dot));
  for (const place of [`, ${dot} 1x`, `background-image: url(${dot})`, `{ background-image: url(${dot}) }`])
    assert.ok(html.includes(place), place);
  assert.ok(html.includes(`data:image/svg+xml;base64,${Buffer.from(DRAWING).toString('base64')}`));
  assert.ok(html.includes('public/none.png'));
  assert.equal(html.includes(Buffer.from('a secret').toString('base64')), false);
  await notebook.close();
});

test('an exported page grows by 24 MiB at most, even if its outputs refer to a file many times', async () => {
  await client.files.put('public/large.bin', Buffer.alloc(2 * 1024 * 1024, 7));
  const many = 'mo.Html("<img src=\'public/large.bin\'>" * 100)';
  const notebook = await openNotebook(server, { imports: 'import marimo as mo', many });
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed');
  const { bytes } = await client.notebooks.export(notebook.id, 'html');
  const [, ...inside] = Buffer.from(bytes).toString('latin1').split('data:application/octet-stream;base64,');
  assert.equal(inside.length, 8);
  await notebook.close();
});
