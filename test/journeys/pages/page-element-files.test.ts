/** Files of `mo.ui.file` in Chromium. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Page } from 'playwright-core';
import { cellOf, notebookIn, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const MAX_BYTES = 100_000_000;

const SHOWN = `
import hashlib
print("has", [(one.name, len(one.contents), hashlib.sha256(one.contents).hexdigest()) for one in file.value or ()])`;
const CELLS = {
  element: 'import marimo as mo\nfile = mo.ui.file(kind="area", multiple=True)\nfile',
  shown: SHOWN,
};

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const shown = (...files: readonly (readonly [name: string, bytes: Uint8Array])[]) =>
  `has [${files.map(([name, bytes]) => `('${name}', ${bytes.length}, '${digest(bytes)}')`).join(', ')}]`;
const input = (page: Page) => outputOf(page, 'element').locator('input[type=file]');
const asFile = (name: string, buffer: Buffer) => ({ name, mimeType: 'application/octet-stream', buffer });
const see = (page: Page, text: string) =>
  cellOf(page, 'shown').getByText(text, { exact: true }).first().waitFor();

/** Returns the names below the hidden folder of the notebook, those of files that are still arriving included. */
function left({ id }: OpenNotebook): readonly string[] {
  const folder = join(server.filesDir, '.troupe-element-files', id);
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** Returns the ids of the files that have arrived whole. */
const arrived = (notebook: OpenNotebook) => left(notebook).filter((name) => /^[0-9a-f]{32}$/.test(name));

async function openPage(
  t: Parameters<typeof openBrowser>[0],
  codes: Readonly<Record<string, string>> = CELLS,
): Promise<{ page: Page; notebook: OpenNotebook }> {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, codes);
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'shown').getByTestId('run-button').first().click();
  await see(page, 'has []');
  return { page, notebook };
}

test('a file of 20 MB reaches the notebook whole, and the page still shows it after it was loaded again', {
  skip,
}, async (t) => {
  const { page, notebook } = await openPage(t);
  const bytes = randomBytes(20_000_000);
  await input(page).setInputFiles(asFile('large.bin', bytes));
  await see(page, shown(['large.bin', bytes]));
  await eventually('the file takes no room', () => left(notebook).length === 0);
  await page.reload();
  await see(page, shown(['large.bin', bytes]));
  await outputOf(page, 'element').getByText('Uploaded').first().waitFor();
  await notebook.close();
});

test('files that are dropped on an element reach the notebook, more of them than are sent at once', {
  skip,
}, async (t) => {
  const { page, notebook } = await openPage(t);
  const names = Array.from({ length: 7 }, (_, at) => `${at}.txt`);
  const frame = outputOf(page, 'element').locator('input[type=file]').locator('..');
  const dropped = await frame.evaluateHandle((_, all) => {
    const transfer = new (Object(globalThis).DataTransfer)();
    for (const name of all) transfer.items.add(new File([`text of ${name}`], name));
    return transfer;
  }, names);
  for (const kind of ['dragenter', 'dragover', 'drop'])
    await frame.dispatchEvent(kind, { dataTransfer: dropped });
  await see(page, shown(...names.map((name) => [name, Buffer.from(`text of ${name}`)] as const)));
  await notebook.close();
});

test('the page says why a file was not taken, and the other files that were chosen with it take no room', {
  skip,
}, async (t) => {
  const { page, notebook } = await openPage(t, {
    ...CELLS,
    element: 'import marimo as mo\nfile = mo.ui.file(kind="area", multiple=True, max_size=200_000_000)\nfile',
  });
  const [small, large] = ['small <i>.bin', 'large <i>.bin'].map((name) => join(server.dataDir, name)) as [
    string,
    string,
  ];
  writeFileSync(small, 'small');
  writeFileSync(large, Buffer.alloc(MAX_BYTES + 1));
  const discarded = page.waitForRequest(/\/api\/element-files\/discard$/);
  await input(page).setInputFiles([small, large]);
  await notebookIn(page)
    .getByText('large <i>.bin: files of an element may have 100 MB each')
    .first()
    .waitFor();
  await discarded;
  await eventually('no file is left', () => left(notebook).length === 0);
  const api = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  const refused = await fetch(`${api.address}api/element-files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.token}` },
    body: Buffer.alloc(MAX_BYTES + 1),
  });
  assert.equal(refused.status, 413);
  assert.deepEqual(left(notebook), []);
  await notebook.close();
});

test('a form sends its file with its button, and a file that was replaced before takes no room', {
  skip,
}, async (t) => {
  const { page, notebook } = await openPage(t, {
    ...CELLS,
    element: 'import marimo as mo\nfile = mo.ui.file(kind="area").form()\nfile',
  });
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  await input(page).setInputFiles(asFile('first.txt', first));
  await eventually('the first file has arrived', () => arrived(notebook).length === 1);
  const [id] = arrived(notebook);
  await input(page).setInputFiles(asFile('second.txt', second));
  await eventually(
    'the second file took its place',
    () => arrived(notebook).length === 1 && arrived(notebook)[0] !== id,
  );
  await see(page, 'has []');
  await outputOf(page, 'element').getByRole('button', { name: 'Submit' }).click();
  await see(page, shown(['second.txt', second]));
  await eventually('the file takes no room', () => left(notebook).length === 0);
  await notebook.close();
});

test('the files that were chosen last are the value, also when earlier ones are still on their way', {
  skip,
}, async (t) => {
  const { page, notebook } = await openPage(t);
  const dropped = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/api/element-files'));
  await page.route(/\/api\/element-files$/, async (route) => {
    if (route.request().postData() !== 'first') await route.continue();
  });
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  const isSent = page.waitForRequest(/\/api\/element-files$/);
  await input(page).setInputFiles(asFile('first.txt', first));
  await isSent;
  await input(page).setInputFiles(asFile('second.txt', second));
  await see(page, shown(['second.txt', second]));
  await dropped;
  await outputOf(page, 'element').getByText('Uploaded').first().waitFor();
  assert.equal(await notebookIn(page).getByText('was not uploaded').count(), 0);
  await eventually('no file is left', () => left(notebook).length === 0);
  await notebook.close();
});
