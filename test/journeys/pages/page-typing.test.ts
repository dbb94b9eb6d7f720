// tier: whole, because a browser moves the focus in its own time
/** Typing and running in marimo's page in Chromium, as fast as people who know Jupyter do it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

test('cells that are typed and run with Shift+Enter one after the other all arrive, and the focus stays where the page puts it', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, { a: '' });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await notebookIn(page).locator('#cell-a .cm-content').first().click();
  const codes = [1, 2, 3, 4, 5].map((number) => `x${number} = ${number}`);
  const focused = () =>
    notebookIn(page)
      .locator('body')
      .evaluate(({ ownerDocument: { activeElement } }) => activeElement?.closest('[id^="cell-"]')?.id);
  for (const code of codes) {
    const cell = await focused();
    await page.keyboard.type(code);
    await page.keyboard.press('Shift+Enter');
    // The page makes the next cell asynchronously. A key that is pressed earlier has no cell to go to.
    await eventually('the focus is in another cell', async () => {
      const now = await focused();
      return now !== undefined && now !== cell;
    });
  }
  await eventually('the notebook has all cells', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    const saved = serialization.cells.map((cell) => cell.code).filter((code) => code !== '');
    return JSON.stringify(saved) === JSON.stringify(codes);
  });
  await eventually('all cells have run', async () => {
    const { items } = await client.executions.list(notebook.id);
    return items.length === codes.length && items.every(({ status }) => status === 'completed');
  });
  const last = (await client.notebooks.get(notebook.id)).serialization.cells.find(
    ({ code }) => code === 'x5 = 5',
  );
  const editor = notebookIn(page).locator(`#cell-${last?.cell_id} .cm-content`).first();
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('0');
  await page.keyboard.press('Control+Enter');
  await page.keyboard.type('1');
  await eventually('what is typed after a run arrives', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    return serialization.cells.some(({ code }) => code === 'x5 = 501');
  });
  assert.equal(
    await editor.evaluate((element) => element.contains(element.ownerDocument.activeElement)),
    true,
  );
  await notebook.close();
});
