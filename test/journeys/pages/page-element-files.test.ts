/** Files of `mo.ui.file` in Chromium. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test from 'node:test';
import { notebookIn, withoutBrowser } from '#test/support/browser.ts';
import { asFile, ElementFilePage, shownOf } from '#test/support/element-file-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);

test('a file of 20 MB reaches the notebook completely, and the page still shows the file after a reload', {
  skip,
}, async (t) => {
  const opened = await ElementFilePage.open(t, server);
  const { page, notebook } = opened;
  const bytes = randomBytes(20_000_000);
  await opened.input.setInputFiles(asFile('large.bin', bytes));
  await opened.see(shownOf(['large.bin', bytes]));
  await eventually('the file takes no room', () => opened.left().length === 0);
  await page.reload();
  await opened.see(shownOf(['large.bin', bytes]));
  await opened.element.getByText('Uploaded').first().waitFor();
  await notebook.close();
});

test('the value contains the files that were chosen last, even if earlier files are still being sent', {
  skip,
}, async (t) => {
  const opened = await ElementFilePage.open(t, server);
  const { page, notebook } = opened;
  const dropped = page.waitForEvent('requestfailed', (request) =>
    request.url().endsWith('/api/element-files'),
  );
  await page.route(/\/api\/element-files$/, async (route) => {
    if (route.request().postData() !== 'first') await route.continue();
  });
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  const isSent = page.waitForRequest(/\/api\/element-files$/);
  await opened.input.setInputFiles(asFile('first.txt', first));
  await isSent;
  await opened.input.setInputFiles(asFile('second.txt', second));
  await opened.see(shownOf(['second.txt', second]));
  await dropped;
  await opened.element.getByText('Uploaded').first().waitFor();
  assert.equal(await notebookIn(page).getByText('was not uploaded').count(), 0);
  await eventually('no file is left', () => opened.left().length === 0);
  await notebook.close();
});
