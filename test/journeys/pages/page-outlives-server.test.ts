// tier: whole, because it keeps a browser busy while a server is killed and comes back
/** The page of a notebook in Chromium, whose server is restarted or loses the worker that has the notebook. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';
import { freePort } from '#test/support/stand-ins/reverse-proxies.ts';

const skip = withoutBrowser;
/** How long people wait before they type again. */
const AGAIN_MS = 5_000;

const cellA = (page: Page) => notebookIn(page).locator('#cell-a');

/** Opens a notebook with one cell in a page, and runs the cell there. */
async function openPage(
  t: TestContext,
  server: ChildServer,
): Promise<{ page: Page; notebook: OpenNotebook }> {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, { a: 'print("first", 1 + 1)' });
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellA(page).getByTestId('run-button').first().click();
  await cellA(page).getByText('first 2').first().waitFor();
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  return { page, notebook };
}

/**
 * Replaces the code of the cell by hand and runs it, until it has printed `shown`. A page that is not connected again yet runs nothing,
 * and shows the code of the server once it is, so people type again.
 */
async function runByHand(page: Page, code: string, shown: string): Promise<void> {
  await eventually('the page runs the cell', async () => {
    await cellA(page).locator('.cm-content').first().click();
    await page.keyboard.press('Control+a');
    await page.keyboard.type(code);
    await page.keyboard.press('Control+Enter');
    const printed = cellA(page).getByText(shown).first();
    return printed.waitFor({ timeout: AGAIN_MS }).then(
      () => true,
      () => false,
    );
  });
}

/** Resolves when the saved notebook has the code: printed text is shown before the run and its code are committed. */
function saved(client: ChildServer['client'], notebookId: string, code: string): Promise<unknown> {
  return eventually('the edit is saved', async () => {
    const { serialization } = await client.notebooks.get(notebookId);
    return serialization.cells[0]?.code === code;
  });
}

/** Resolves when the session is ready again after requests that nobody answers. */
function readyAgain(client: ChildServer['client'], sessionId: string): Promise<unknown> {
  return eventually('the session is ready again', async () => {
    const session = await client.notebookSessions.get(sessionId).catch(() => undefined);
    return session?.status === 'ready';
  });
}

test('after kill -9 and a restart of the server, the open page shows the notebook, and runs and saves an edit, without a reload', {
  skip,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_PORT: String(await freePort()) });
  const { page, notebook } = await openPage(t, server);
  await page.evaluate('globalThis.wasNeverReloaded = true');
  await server.end('SIGKILL');
  const { client } = await server.again();
  await readyAgain(client, notebook.id);
  await cellA(page).getByText('first 2').first().waitFor();
  await runByHand(page, 'print("second", 2 + 2)', 'second 4');
  await saved(client, notebook.id, 'print("second", 2 + 2)');
  assert.equal(await page.evaluate('globalThis.wasNeverReloaded'), true);
});

test('text that is typed while the server is away stays in the page and is saved when the server is back, as the bar says', {
  skip,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_PORT: String(await freePort()) });
  const { page, notebook } = await openPage(t, server);
  await server.end('SIGKILL');
  await page.getByText('The server does not answer').waitFor();
  await cellA(page).locator('.cm-content').first().click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('  # typed meanwhile');
  await page.getByText('unsaved').waitFor();
  await page.keyboard.press('Control+Enter');
  await notebookIn(page).getByText('The server does not answer.', { exact: true }).first().waitFor();
  const { client } = await server.again();
  // The button may be gone already, and a click would wait for it.
  await page.getByRole('button', { name: 'Try again' }).evaluateAll((buttons) => {
    for (const button of buttons) Object(button).click();
  });
  const code = 'print("first", 1 + 1)  # typed meanwhile';
  await saved(client, notebook.id, code);
  await page.getByText('The server does not answer').waitFor({ state: 'detached' });
  assert.equal(await cellA(page).locator('.cm-content').first().textContent(), code);
  await page.keyboard.type(', and after');
  await saved(client, notebook.id, `${code}, and after`);
});

test('when the worker that has the notebook is killed, the open page continues in another worker, without a reload', {
  skip,
}, async (t) => {
  const server = await startChildServer(t, { TROUPE_WORKERS: '3' });
  const { page, notebook } = await openPage(t, server);
  await page.evaluate('globalThis.wasNeverReloaded = true');
  const started = server.log.findLast(
    ({ sessionId, msg }) => sessionId === notebook.id && msg === 'a kernel has started',
  );
  const home = workersOf(server.pid).find(({ number }) => number === started?.worker);
  assert.ok(home !== undefined);
  process.kill(home.pid, 'SIGKILL');
  await readyAgain(server.client, notebook.id);
  await runByHand(page, 'print("second", 2 + 2)', 'second 4');
  await saved(server.client, notebook.id, 'print("second", 2 + 2)');
  assert.equal(await page.evaluate('globalThis.wasNeverReloaded'), true);
});
