// tier: whole, because each test keeps a browser busy, and one file of this kind is in `npm test`
/** The ways to choose files of `mo.ui.file` in Chromium: `page-element-files.test.ts` has the usual one. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { notebookIn, withoutBrowser } from '#test/support/browser.ts';
import { asFile, ElementFilePage, shownOf } from '#test/support/element-file-page.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const MAX_BYTES = 100_000_000;

test('files that are dropped on an element reach the notebook, even if the page cannot send them all at once', {
  skip,
}, async (t) => {
  const opened = await ElementFilePage.open(t, server);
  const { notebook } = opened;
  const names = Array.from({ length: 7 }, (_, at) => `${at}.txt`);
  const frame = opened.input.locator('..');
  const dropped = await frame.evaluateHandle((_, all) => {
    const transfer = new (Object(globalThis).DataTransfer)();
    for (const name of all) transfer.items.add(new File([`text of ${name}`], name));
    return transfer;
  }, names);
  for (const kind of ['dragenter', 'dragover', 'drop'])
    await frame.dispatchEvent(kind, { dataTransfer: dropped });
  await opened.see(shownOf(...names.map((name) => [name, Buffer.from(`text of ${name}`)] as const)));
  await notebook.close();
});

test('the page gives the reason why a file was refused, and other files of the same choice are removed', {
  skip,
}, async (t) => {
  const opened = await ElementFilePage.open(
    t,
    server,
    'mo.ui.file(kind="area", multiple=True, max_size=200_000_000)',
  );
  const { page, notebook } = opened;
  const [small, large] = ['small <i>.bin', 'large <i>.bin'].map((name) => join(server.dataDir, name)) as [
    string,
    string,
  ];
  writeFileSync(small, 'small');
  writeFileSync(large, Buffer.alloc(MAX_BYTES + 1));
  const discarded = page.waitForRequest(/\/api\/element-files\/discard$/);
  await opened.input.setInputFiles([small, large]);
  await notebookIn(page)
    .getByText('large <i>.bin: files of an element may have 100 MB each')
    .first()
    .waitFor();
  await discarded;
  await eventually('no file is left', () => opened.left().length === 0);
  const api = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  const refused = await fetch(`${api.address}api/element-files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${api.token}` },
    body: Buffer.alloc(MAX_BYTES + 1),
  });
  assert.equal(refused.status, 413);
  assert.deepEqual(opened.left(), []);
  await notebook.close();
});

test('a form sends its file with its button, and a file that was replaced before is removed', {
  skip,
}, async (t) => {
  const opened = await ElementFilePage.open(t, server, 'mo.ui.file(kind="area").form()');
  const { notebook } = opened;
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  await opened.input.setInputFiles(asFile('first.txt', first));
  await eventually('the first file has arrived', () => opened.arrived().length === 1);
  const [id] = opened.arrived();
  await opened.input.setInputFiles(asFile('second.txt', second));
  await eventually(
    'the second file took its place',
    () => opened.arrived().length === 1 && opened.arrived()[0] !== id,
  );
  await opened.see(shownOf());
  await opened.element.getByRole('button', { name: 'Submit' }).click();
  await opened.see(shownOf(['second.txt', second]));
  await eventually('the file takes no room', () => opened.left().length === 0);
  await notebook.close();
});
