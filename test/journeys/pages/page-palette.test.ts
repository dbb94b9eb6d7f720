/** The command palette of marimo's page and the panels that it opens, pressed in Chromium. */
// tier: whole, because it presses some two hundred parts of the page one after the other
import assert from 'node:assert/strict';
import test from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openPressedPage, Pressing } from '#test/support/pressing.ts';
import { startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;

test('every entry of the command palette and every button of a panel works', {
  skip,
}, async () => {
  const { notebook, page } = await openPressedPage(server, browser!);
  const pressing = await Pressing.begin(page, 'fails');
  await pressing.pressEntries('[data-testid="command-palette-button"]');
  await pressing.collect();
  assert.deepEqual(pressing.problems, []);
  await page.close();
  await notebook.close();
});
