// tier: whole, because it keeps a browser busy with a file of 100 MB
/** The largest file of `mo.ui.file`, in Chromium. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { cellOf, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { elementFilesIn } from '#test/support/element-files.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const MAX_BYTES = 100_000_000;
const CELLS = {
  element: 'import marimo as mo\nfile = mo.ui.file(kind="area")\nfile',
  shown:
    'import hashlib\nprint("has", [(len(one.contents), hashlib.sha256(one.contents).hexdigest()) for one in file.value])',
};

test('an element file of 100 MB reaches the notebook completely', { skip: withoutBrowser }, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, CELLS);
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  const see = (text: string) => cellOf(page, 'shown').getByText(text, { exact: true }).first().waitFor();
  await cellOf(page, 'shown').getByTestId('run-button').first().click();
  await see('has []');
  const bytes = Buffer.alloc(MAX_BYTES, 7);
  const path = join(server.dataDir, 'large.bin'); // beyond the limit of Playwright for bytes
  writeFileSync(path, bytes);
  await outputOf(page, 'element').locator('input[type=file]').setInputFiles(path);
  await see(`has [(${MAX_BYTES}, '${createHash('sha256').update(bytes).digest('hex')}')]`);
  await notebook.close();
  await eventually('no file is left', () => elementFilesIn(server).length === 0);
});
