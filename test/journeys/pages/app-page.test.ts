/** A notebook that its session runs as an app: the page of somebody who may edit runs its cells, once. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

const APP = { a: 'import marimo as mo', b: 'mo.md("shown by the app")', broken: 'a b' };

const hasOutput = (message: Readonly<Record<string, unknown>>) =>
  message.cell_id === 'b' && String(Object(message.output).data).includes('shown by the app');

test('opening a session in mode run runs no cell, as the page of a viewer says; the first page of an editor runs all cells once, in the name of the editor', async () => {
  const notebook = await openNotebook(server, APP, { mode: 'run' });
  await using viewer = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  await viewer.follow();
  const isNotice = ({ output }: Readonly<Record<string, unknown>>) =>
    String(Object(output).data).includes('This app has not run yet');
  await viewer.next(isNotice);
  assert.deepEqual((await client.executions.list(notebook.id)).items, []);
  await using first = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await first.follow();
  await viewer.next(hasOutput);
  await using second = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await second.follow();
  await second.next(hasOutput);
  await eventually('the run has ended', async () => (await notebook.record()).status === 'ready');
  const { items } = await client.executions.list(notebook.id);
  assert.deepEqual(
    items.map(({ input, createdBy }) => [input, createdBy]),
    [[{ type: 'all', structuralErrors: 'skip' }, 'owner']],
  );
  assert.ok(!second.messages.some(isNotice));
  await notebook.close();
});

test('in a browser an app shows its outputs, and before the first run a viewer sees why outputs are missing', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, APP, { mode: 'run' });
  const view = await client.notebookSessions.page(notebook.id, { access: 'view' });
  const { page: looking } = await browser.openPath(server, view.url);
  await notebookIn(looking).getByText('This app has not run yet').first().waitFor();
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await notebookIn(page).getByText('shown by the app').first().waitFor();
  await notebookIn(looking).getByText('shown by the app').first().waitFor();
  await notebook.close();
});
