// tier: whole, because a person waits for kernels and sessions that end under the page
/** The page in Chromium after its kernel or its session has ended. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { cellOf, notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

test('the page shows that its kernel has died, and runs cells in the next kernel', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, { a: 'print("pid", 1 + 1)' });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'a').getByTestId('run-button').first().click();
  await cellOf(page, 'a').getByText('pid 2').first().waitFor();
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  await callCode(client, notebook.id, 'import os\nos._exit(1)').catch(() => undefined); // nobody is left to answer
  await notebookIn(page).getByText('The kernel has ended').first().waitFor();
  await notebookIn(page).getByText('its process exited with code 1').first().waitFor();
  await eventually('the session is ready again', async () => (await notebook.record()).status === 'ready');
  await cellOf(page, 'a').locator('.cm-content').first().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('print("again")');
  await page.keyboard.press('Control+Enter');
  await cellOf(page, 'a').getByText('again', { exact: true }).first().waitFor();
  await notebook.close();
});

test('the bar says that the kernel was ended because nobody used it, until a cell runs in the next kernel', {
  skip: withoutBrowser,
}, async (t) => {
  const sleepy = await startServer(t, { TROUPE_IDLE_TIMEOUT_S: '1' });
  const browser = await openBrowser(t);
  const notebook = await openNotebook(sleepy, { a: 'print("ran")' });
  await notebook.run({ type: 'all' });
  const kernels = async () => (await sleepy.client.kernels()).items.length;
  await eventually('the kernel has ended', async () => (await kernels()) === 0);
  const { url } = await sleepy.client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(sleepy, url);
  const reason = page.getByText('The kernel was ended after 1 second without use. Run the cells again.');
  await reason.waitFor();
  await cellOf(page, 'a').getByTestId('run-button').first().click();
  await reason.waitFor({ state: 'detached' });
  await notebook.close();
});

test('the page of a notebook whose session has ended by itself shows the reason', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const { token } = server.owner;
  const headers = { authorization: `Bearer ${token}`, origin: server.baseUrl };
  assert.ok((await browser.context.request.post(`${server.baseUrl}/sign-in`, { headers })).ok());
  for (const [lifetime, why] of [
    [{ idleTimeoutS: 1 }, 'It was closed after 1 second without use.'],
    [{ ttlS: 1 }, 'It was closed after the 1 second for which it was opened.'],
  ] as const) {
    const { id: notebookId } = await client.notebooks.create({});
    const { environmentId } = await client.executionEnvironments.create();
    await client.notebookSessions.open({ notebookId, environmentId, ...lifetime });
    const isClosed = async () =>
      (await client.notebookSessions.list({ notebookId })).items[0]?.status === 'closed';
    await eventually('the session has ended', isClosed);
    const { page } = await browser.openPath(server, `/n/${notebookId}/`);
    await page.getByText(why).waitFor();
  }
});
