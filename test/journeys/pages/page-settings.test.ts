/** The settings of a notebook that its page changes: options and layout of the app, and the title. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

const GRID = { type: 'grid', data: { columns: 24, rowHeight: 20, cells: [{ position: [0, 0, 4, 2] }] } };

async function optionsOf(notebookId: string): Promise<Readonly<Record<string, unknown>>> {
  return (await client.notebooks.get(notebookId)).serialization.app.options;
}

test('options, title and layout of the app are kept after a reload, and are shown in other pages and in an exported file', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const notebook = await openNotebook(server, { a: '"first"', b: '"second"' });
  const open = async () =>
    (await browser.openPath(server, (await client.notebookSessions.page(notebook.id)).url)).page;
  const page = await open();
  const own = notebookIn(page);
  await own.getByTestId('app-config-button').click();
  await own.getByLabel('App title').fill('Squares');
  await Promise.all([
    page.waitForResponse((response) => response.url().endsWith('/save_app_config')),
    own.locator('select').first().selectOption('full'),
  ]);
  await page.keyboard.press('Escape');
  const name = own.getByTestId('dir-completion-input').first();
  await name.fill('numbers.py');
  await Promise.all([
    page.waitForResponse((response) => response.url().endsWith('/kernel/rename')),
    name.press('Enter'),
  ]);
  assert.equal((await client.notebooks.get(notebook.id)).title, 'numbers');
  await own.getByTestId('hide-code-button').click();
  await own.getByTestId('layout-select').click();
  await own.getByText('Grid', { exact: true }).last().click();
  await Promise.all([
    page.waitForResponse((response) => response.url().endsWith('/kernel/save')),
    own.getByTestId('save-button').click(),
  ]);
  const { layout_file, ...options } = await optionsOf(notebook.id);
  assert.deepEqual(options, { width: 'full', app_title: 'numbers' });
  const layout = JSON.parse(Buffer.from(String(layout_file).split(',')[1] ?? '', 'base64').toString());
  assert.equal(layout.type, 'grid');
  await page.reload();
  for (const shown of [page, await open()]) {
    const its = notebookIn(shown);
    await its.getByTestId('app-config-button').click();
    assert.equal(await its.getByLabel('App title').inputValue(), 'numbers');
    await shown.keyboard.press('Escape');
    await its.getByTestId('hide-code-button').click();
    await its.getByTestId('layout-select').getByText('Grid').waitFor();
  }
  const { bytes } = await client.notebooks.export(notebook.id, 'py');
  const python = Buffer.from(bytes).toString();
  assert.match(python, /width="full"/);
  assert.match(python, /app_title="numbers"/);
  assert.match(python, /layout_file="data:application\/json;base64,/);
  await notebook.close();
});

test('a page that repeats its layout and options undoes no change of another page', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using other = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.equal((await page.follow()).layout, null);
  await other.follow();
  const first = { width: 'medium', app_title: null, auto_download: [], sql_output: 'auto' };
  await page.do('kernel/save_app_config', { config: { ...first, width: 'full' } });
  await page.do('kernel/rename', { filename: '/work/Numbers of May.py' });
  await page.do('kernel/save', { layout: GRID });
  await other.do('kernel/save', { layout: null });
  await other.do('kernel/save_app_config', { config: { ...first, sql_output: 'polars' } });
  await page.do('kernel/save', { layout: GRID });
  const { layout_file, ...options } = await optionsOf(notebook.id);
  assert.deepEqual(options, { width: 'full', app_title: 'Numbers of May', sql_output: 'polars' });
  assert.equal(typeof layout_file, 'string');
  await using later = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const { layout, app_config } = await later.follow();
  assert.deepEqual(layout, GRID);
  assert.equal(Object(app_config).width, 'full');
  await later.do('kernel/save', { layout: null });
  assert.equal('layout_file' in (await optionsOf(notebook.id)), false, 'the app has no layout any more');
  await notebook.close();
});

test('options and layout of an app may have up to 64 KiB, and a title 200 characters', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  const titled = (length: number) => page.send('kernel/rename', { filename: `${'t'.repeat(length)}.py` });
  assert.equal((await titled(200)).status, 200);
  assert.equal((await titled(201)).status, 400);
  await page.do('kernel/rename', { filename: '.py' });
  const room = 64 * 1024 - JSON.stringify({ options: { css_file: '' } }).length;
  const styled = (length: number) =>
    page.send('kernel/save_app_config', { config: { css_file: 'c'.repeat(length) } });
  assert.equal((await styled(room + 1)).status, 400);
  assert.equal((await styled(room)).status, 200);
  assert.equal((await page.send('kernel/save', { layout: GRID })).status, 400, 'there is no room left');
  for (const layout of [1, [], { type: 1, data: {} }, { type: 'grid' }])
    assert.equal((await page.send('kernel/save', { layout })).status, 400, JSON.stringify(layout));
  assert.deepEqual(await optionsOf(notebook.id), { css_file: 'c'.repeat(room) });
  await notebook.close();
});
