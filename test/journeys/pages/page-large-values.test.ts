/** Values of UI elements that are large, in Chromium. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { cellOf, notebookIn, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

const CELLS = {
  element: 'import marimo as mo\nfile = mo.ui.file(kind="area")\nfile',
  size: 'print("bytes", sum(len(one.contents) for one in file.value))',
};

test('a file of 11 MB reaches the notebook, and the page says that one of 20 MB does not', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, CELLS);
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'size').getByTestId('run-button').first().click();
  await cellOf(page, 'size').getByText('bytes 0', { exact: true }).first().waitFor();
  const choose = (bytes: number) =>
    outputOf(page, 'element')
      .locator('input[type=file]')
      .setInputFiles({ name: 'a.bin', mimeType: 'application/octet-stream', buffer: Buffer.alloc(bytes) });
  await choose(11_000_000);
  await cellOf(page, 'size').getByText('bytes 11000000', { exact: true }).first().waitFor();
  const refused = notebookIn(page).getByText('files of an element may have 11 MB together').first();
  assert.equal(await refused.count(), 0);
  await choose(20_000_000);
  await refused.waitFor();
  await notebook.close();
});
