/** The parts of marimo's page that people use, in Chromium: each reaches the live session and comes back. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { cellOf, notebookIn, openBrowser, outputOf, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

const CELLS = {
  imports: 'import marimo as mo\nimport pandas as pd\nimport matplotlib.pyplot as plt\nimport altair as alt',
  table: 'df = pd.DataFrame({"x": range(60), "y": [i * i for i in range(60)]})\nmo.ui.table(df)',
  plot: 'plt.plot([1, 2, 4])\nplt.gca()',
  chart: 'alt.Chart(pd.DataFrame({"x": [1, 2], "y": [3, 4]})).mark_bar().encode(x="x", y="y")',
  markdown: 'mo.md("**bold** and $x^2$")',
  sql: '_df = mo.sql("select 6 * 7 as answer")',
  elements: 'name = mo.ui.text(label="name")\nfile = mo.ui.file(kind="area")\nmo.vstack([name, file])',
  values: 'mo.md(f"name {name.value}, files {[f.name for f in file.value]}")',
  download: 'mo.download(b"hello", filename="hello.txt", label="get file")',
  tabs: 'mo.ui.tabs({"one": mo.md("first"), "two": mo.md("second tab")})',
  slider: 'mo.ui.slider(1, 10)',
};

test('plots, charts, paged tables, SQL, formulas, uploads, downloads and tabs work in the page, and its elements in an exported file', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, CELLS);
  const { runId } = await client.executions.submit(notebook.id, { type: 'all' });
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await outputOf(page, 'plot').locator('img').first().waitFor();
  await outputOf(page, 'chart').locator('canvas, svg').first().waitFor();
  await outputOf(page, 'markdown').locator('strong', { hasText: 'bold' }).waitFor();
  await outputOf(page, 'markdown').locator('.katex').first().waitFor();
  await outputOf(page, 'sql').getByText('42').first().waitFor();
  await outputOf(page, 'table').getByText('81', { exact: true }).first().waitFor();
  await outputOf(page, 'table')
    .getByRole('button', { name: /next page/i })
    .first()
    .click();
  await outputOf(page, 'table').getByText('144', { exact: true }).first().waitFor();
  const field = outputOf(page, 'elements').locator('input[type=text], input:not([type])').first();
  await field.fill('Ann');
  await page.keyboard.press('Enter');
  await outputOf(page, 'values').getByText('name Ann').first().waitFor();
  await outputOf(page, 'elements')
    .locator('input[type=file]')
    .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('abc') });
  await outputOf(page, 'values').getByText("files ['a.txt']").first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    outputOf(page, 'download').locator('a, button').first().click(),
  ]);
  assert.equal(download.suggestedFilename(), 'hello.txt');
  await outputOf(page, 'tabs').locator('[role=tab]').nth(1).click();
  await outputOf(page, 'tabs').getByText('second tab').locator('visible=true').waitFor();
  const { bytes } = await client.notebooks.export(notebook.id, 'html');
  const file = join(server.filesDir, 'exported.html');
  writeFileSync(file, bytes);
  await page.goto(pathToFileURL(file).href);
  // A slider without its style sheet has no size, so that nobody sees it.
  await page.locator('[role=slider]').first().waitFor();
  writeFileSync(file, Buffer.from(bytes).toString().replaceAll(server.baseUrl, 'http://127.0.0.1:9'));
  await page.reload();
  await page.getByText('programs of the server http://127.0.0.1:9, but could not load them').waitFor();
  await notebook.close();
});

test('a new cell, a value from the keyboard and a removed cell are saved, and an interrupt is shown', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, {
    a: 'a = 20',
    slow: 'import time\nfor step in range(6000):\n    print("step", step)\n    time.sleep(0.05)',
  });
  const saved = async () => (await client.notebooks.get(notebook.id)).serialization.cells;
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  await cellOf(page, 'a').hover();
  await cellOf(page, 'a').getByTestId('create-cell-button').last().click();
  await eventually('the notebook has a new cell', async () => (await saved()).length === 3);
  const added = (await saved()).find(({ cell_id }) => cell_id !== 'a' && cell_id !== 'slow')!.cell_id;
  await cellOf(page, added).locator('.cm-content').first().click();
  await page.keyboard.type('a * 21 + 1');
  await page.keyboard.press('Control+Enter');
  await outputOf(page, added).getByText('421').first().waitFor();
  await cellOf(page, added).hover();
  await cellOf(page, added).getByTestId('delete-button').first().click();
  await eventually('the new cell is gone', async () => (await saved()).length === 2);
  await cellOf(page, 'slow').getByTestId('run-button').first().click();
  await cellOf(page, 'slow').getByText('step 2').first().waitFor();
  await notebookIn(page).locator('[data-testid="interrupt-button"]:not([disabled])').first().click();
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  await cellOf(page, 'slow')
    .getByText(/interrupted/i)
    .first()
    .waitFor();
  await notebook.close();
});

test('a prompt of input() shows no field for an answer, before and after the page is loaded again', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, {
    asks: 'answer = input("Your name? ")',
    after: 'print("after")',
  });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  const isShown = async () => {
    await cellOf(page, 'asks').getByText('Your name?').first().waitFor();
    await cellOf(page, 'asks').getByText('EOFError').first().waitFor();
    assert.equal(await notebookIn(page).getByTestId('console-input').count(), 0, 'there is a field');
  };
  await cellOf(page, 'asks').getByTestId('run-button').first().click();
  await isShown();
  await page.reload();
  await isShown();
  // A page with a field gives it the focus, and takes what is typed for the answer.
  await cellOf(page, 'after').locator('.cm-content').first().click();
  await page.keyboard.press('Control+Enter');
  await cellOf(page, 'after').getByText('after', { exact: true }).first().waitFor();
  await isShown();
  await notebook.close();
});
