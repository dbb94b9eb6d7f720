/** The page of a live session, as Chromium shows it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { cellOf, notebookIn, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

const CELLS = {
  imports: 'import marimo as mo\nimport pandas as pd',
  slider: 'n = mo.ui.slider(1, 50, value=5, label="rows")\nn',
  table: 'df = pd.DataFrame({"x": range(n.value)})\nprint(f"{n.value} rows")\ndf',
};

/**
 * The page has no origin, so one part of marimo's front end finds no storage for column widths, and
 * reports that.
 */
const isExpected = (complaint: string) => complaint.includes('localStorage');

test("in a browser cells run, a slider updates its dependents, edits are saved, an agent's work is visible, and a reload shows everything, without another host", {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, CELLS);
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page, complaints } = await browser.openPath(server, url);
  assert.equal(
    new URL(page.url()).pathname,
    `/n/${notebook.id}/`,
    'the one-time address is gone from the address bar',
  );
  const { httpOnly, sameSite, path } = (await browser.context.cookies(page.url()))[0] ?? {};
  assert.deepEqual([httpOnly, sameSite, path], [true, 'Lax', `/n/${notebook.id}/`]);
  await cellOf(page, 'table').locator('[data-testid="run-button"]').first().click();
  await cellOf(page, 'table').getByText('5 rows').first().waitFor();
  const thumb = outputOf(page, 'slider').locator('[role="slider"]');
  await thumb.focus();
  await thumb.press('End');
  await cellOf(page, 'table').getByText('50 rows').first().waitFor();
  await cellOf(page, 'table').locator('.cm-content').first().click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type('  # edited here');
  await eventually('the edit is saved', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    return serialization.cells.some(({ code }) => code.endsWith('# edited here'));
  });
  const agent = [
    'import marimo._code_mode as cm',
    'async with cm.get_context() as ctx:',
    '    cell = ctx.create_cell("made = \'by an agent\'\\nmade", hide_code=False)',
    '    ctx.run_cell(cell)',
  ].join('\n');
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  assert.equal((await callCode(client, notebook.id, agent)).success, true);
  await notebookIn(page).locator('[id^="output-"]').getByText('by an agent').first().waitFor();
  await page.reload();
  await cellOf(page, 'table').getByText('50 rows').first().waitFor();
  await outputOf(page, 'slider').locator('[role="slider"][aria-valuenow="50"]').waitFor();
  // Keys reach the notebook before anybody has clicked in it.
  await eventually('the frame has the focus', () =>
    page.evaluate('document.activeElement.localName === "iframe"'),
  );
  assert.deepEqual(
    complaints.filter((one) => !isExpected(one)),
    [],
  );
  await notebook.close();
});

test('a script in the page, such as a script in an output, cannot reach a cookie, storage or another page, and has no token for the API', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const attack = `(async () => {
    const found = {};
    const attempt = async (name, act) => { try { found[name] = String(await act()); } catch (error) { found[name] = 'refused'; } };
    await attempt('cookie', () => document.cookie);
    await attempt('storage', () => localStorage.length);
    await attempt('api', async () => (await fetch('/api/v3/me', { credentials: 'include' })).status);
    await attempt('page', async () => (await fetch('./', { credentials: 'include' })).status);
    await attempt('worker', () => navigator.serviceWorker.register('/sw.js'));
    await attempt('host', async () => (await fetch('http://localhost:1/')).status);
    return found;
  })()`;
  const notebook = await openNotebook(server, { a: '1' });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'a').waitFor();
  const frame = page.frames().find((one) => one.url().endsWith('/page/'));
  const found = await frame?.evaluate<unknown>(attack);
  assert.deepEqual(found, {
    cookie: 'refused',
    storage: 'refused',
    api: 'refused',
    page: 'refused',
    worker: 'refused',
    host: 'refused',
  });
  await notebook.close();
});
