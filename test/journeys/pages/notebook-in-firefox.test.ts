// tier: whole, because it needs Firefox
/** The page of a live session, as Firefox shows it. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { notebookIn, openFirefox, withoutFirefox } from '#test/support/firefox.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const TABS = 8;

const server = await startServer(test);
const { client } = server;

const CELLS = {
  imports: 'import marimo as mo',
  slider: 'n = mo.ui.slider(1, 50, value=5, label="rows")\nn',
  rows: 'print(f"{n.value} rows")\nmo.md(f"# {n.value} squared is {n.value ** 2}")',
};

test('in Firefox cells run, a slider updates its dependents, an edit is saved, and a reload shows everything, without another host', {
  skip: withoutFirefox,
}, async (t) => {
  const firefox = await openFirefox(t);
  const notebook = await openNotebook(server, CELLS);
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page, complaints } = await firefox.open(server, url);
  assert.equal(new URL(page.url()).pathname, `/n/${notebook.id}/`);
  const frame = await notebookIn(page);
  await frame.locator('#cell-rows [data-testid="run-button"]').click();
  await frame.locator('#cell-rows ::-p-text(5 rows)').wait();
  const thumb = await frame.waitForSelector('#output-slider >>> [role="slider"]');
  await thumb?.focus();
  await page.keyboard.press('End');
  await frame.locator('#output-rows ::-p-text(50 squared is 2500)').wait();
  await frame.locator('#cell-rows .cm-content').click();
  await page.keyboard.down('Control');
  await page.keyboard.press('End');
  await page.keyboard.up('Control');
  await page.keyboard.type('  # edited here');
  await eventually('the edit is saved', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    return serialization.cells.some(({ code }) => code.endsWith('# edited here'));
  });
  assert.deepEqual(await complaints(), []);
  await page.reload({ waitUntil: 'domcontentloaded' });
  await (await notebookIn(page)).locator('#output-rows ::-p-text(50 squared is 2500)').wait();
  assert.deepEqual(await complaints(), []);
  await notebook.close();
});

test('in Firefox a notebook in its frame downloads a file of the workspace and data of an output', {
  skip: withoutFirefox,
}, async (t) => {
  const firefox = await openFirefox(t);
  await client.files.put('seeds.txt', Buffer.from('to be sown'));
  const notebook = await openNotebook(server, CELLS);
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page, complaints } = await firefox.open(server, url);
  const frame = await notebookIn(page);
  await frame.locator('#cell-rows').wait();
  // As marimo's page begins a download: it clicks a link that is nowhere in the page.
  const follow = (href: string, name: string) =>
    frame.evaluate(
      `Object.assign(document.createElement('a'), ${JSON.stringify({ href, download: name })}).click()`,
    );
  await follow(`${server.baseUrl}/n/${notebook.id}/api/files/download?path=%2Fseeds.txt`, 'seeds.txt');
  await follow('data:text/plain,of%20an%20output', 'output.txt');
  for (const [name, content] of [
    ['seeds.txt', 'to be sown'],
    ['output.txt', 'of an output'],
  ] as const) {
    const path = join(firefox.downloads, name);
    await eventually(name, () => existsSync(path) && readFileSync(path, 'utf8') === content);
  }
  assert.deepEqual(await complaints(), []);
  await notebook.close();
});

test('in Firefox eight tabs follow one notebook at once', { skip: withoutFirefox }, async (t) => {
  const firefox = await openFirefox(t);
  const notebook = await openNotebook(server, CELLS);
  const tabs = [];
  for (let i = 0; i < TABS; i++) {
    const { url } = await client.notebookSessions.page(notebook.id);
    const { page } = await firefox.open(server, url);
    const frame = await notebookIn(page);
    await frame.locator('#cell-rows').wait();
    tabs.push(frame);
  }
  const { runId } = await client.executions.submit(notebook.id, { type: 'all' });
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  for (const frame of tabs) await frame.locator('#output-rows ::-p-text(5 squared is 25)').wait();
  await notebook.close();
});
