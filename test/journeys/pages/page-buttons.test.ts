// tier: whole, because it presses for minutes, and each press depends on animations of marimo's page
/** The buttons and menus of marimo's page, pressed in Chromium. `page-palette.test.ts` presses the command palette. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openPressedPage, Pressing } from '#test/support/pressing.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;

const PALETTE = '[data-testid="command-palette-button"]';

test('every button and menu item of the page works, and the palette offers no formatting', {
  skip,
}, async () => {
  const { notebook, page } = await openPressedPage(server, browser!);
  const pressing = await Pressing.begin(page, 'fails');
  await pressing.pressEntries('#cell-fails [data-testid="cell-actions-button"]');
  await pressing.pressEntries('[data-testid="notebook-menu-dropdown"]');
  await pressing.pressButtons();
  await pressing.press((await pressing.keys(PALETTE))[0]!, PALETTE);
  await pressing.frame.locator('[cmdk-item]').first().waitFor();
  const entries = await pressing.keys('[cmdk-item]');
  assert.deepEqual([entries.length > 20, entries.filter((key) => /Format/.test(key))], [true, []]);
  await pressing.rest();
  await pressing.collect();
  assert.deepEqual(pressing.problems, []);
  await page.close();
  await notebook.close();
});

test('the page opens a copy of its notebook in a page of its own, and closes the session', {
  skip,
}, async () => {
  const { notebook, page, codes } = await openPressedPage(server, browser!);
  const frame = notebookIn(page);
  await frame.getByTestId('notebook-menu-dropdown').click();
  await frame.getByText('Duplicate notebook').click();
  await frame.locator(':is([role=dialog], [role=alertdialog]) input').fill('A copy.py');
  const [popup] = await Promise.all([
    page.waitForEvent('popup'),
    frame.getByRole('button', { name: 'Copy notebook' }).click(),
  ]);
  await popup.waitForURL(/\/n\/nb_[^/]+\/$/);
  const [, id = ''] = /\/n\/([^/]+)\//.exec(popup.url()) ?? [];
  assert.notEqual(id, notebook.id);
  const { title, serialization } = await server.client.notebooks.get(id);
  assert.equal(title, 'A copy');
  assert.deepEqual(
    serialization.cells.map(({ code }) => code),
    codes,
  );
  await popup.close();
  await frame.getByTestId('shutdown-button').click();
  await frame.getByRole('button', { name: 'Confirm Shutdown' }).click();
  await eventually('the session is closed', async () => (await notebook.record()).status === 'closed');
  await page.close();
});
