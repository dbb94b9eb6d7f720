/** The export of a notebook by its page, and the panels in a browser. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

const FORMATS = { html: 'html', script: 'py', markdown: 'md', ipynb: 'ipynb' } as const;

test('a page with any access exports its notebook in four formats, with or without code and outputs', async () => {
  const notebook = await openNotebook(server, { a: 'answer_of_all = 6 * 7\nanswer_of_all' });
  await notebook.run({ type: 'all' });
  for (const access of ['view', 'interact', 'edit'] as const) {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    for (const [format, ending] of Object.entries(FORMATS)) {
      const response = await page.send(`export/${format}`, { download: true });
      assert.equal(response.status, 200, format);
      assert.match(response.headers.get('content-disposition') ?? '', new RegExp(`\\.${ending}"`));
      assert.match(response.headers.get('access-control-expose-headers') ?? '', /content-disposition/);
      const text = await response.text();
      assert.match(text, /answer_of_all/, format);
      if (format === 'html')
        assert.ok(text.includes(`${baseUrl}/marimo/`), 'the page is loaded from this server');
    }
  }
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  const withoutCode = await page.send('export/html', { download: true, files: [], includeCode: false });
  const shown = await withoutCode.text();
  assert.ok(shown.includes('42') && !shown.includes('answer_of_all'));
  const outputsOf = async (includeOutputs: boolean) => {
    const response = await page.send('export/ipynb', { sortMode: 'top-down', includeOutputs });
    const { cells } = (await response.json()) as { cells: { outputs: unknown[] }[] };
    return cells.flatMap(({ outputs }) => outputs).length;
  };
  assert.deepEqual([await outputsOf(true), await outputsOf(false)], [1, 0]);
  const availability = await fetch(`${page.address}api/export/availability`, {
    headers: { authorization: `Bearer ${page.token}` },
  });
  const { formats } = (await availability.json()) as {
    formats: { format: string; dependenciesAvailable: boolean }[];
  };
  assert.deepEqual(
    formats
      .filter(({ dependenciesAvailable }) => dependenciesAvailable)
      .map(({ format }) => format)
      .sort(),
    Object.keys(FORMATS).sort(),
  );
  await notebook.close();
  assert.equal((await page.send('export/html', {})).status, 409);
});

test('a page with any access shows the snippets of marimo', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  for (const access of ['view', 'edit'] as const) {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    const response = await fetch(`${page.address}api/documentation/snippets`, {
      headers: { authorization: `Bearer ${page.token}` },
    });
    const { snippets } = (await response.json()) as {
      snippets: { title: string; sections: { html: string | null; code: string | null }[] }[];
    };
    const found = snippets.find(({ title }) => title === 'DuckDB: CSV File Ingestion');
    assert.match(found?.sections[0]?.html ?? '', /<h1.*CSV File Ingestion/);
    assert.match(found?.sections[1]?.code ?? '', /^csv_path = /);
    assert.ok(snippets.length > 90);
  }
  await notebook.close();
});

test('in a browser, the menu downloads the notebook, and panels show packages, download and copy files, add a secret and insert a snippet', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  await client.files.put('seeds.txt', Buffer.from('to be sown'));
  const notebook = await openNotebook(server, { a: '"shown"' });
  const { url } = await client.notebookSessions.page(notebook.id);
  const { page } = await browser.openPath(server, url);
  const own = notebookIn(page);
  await own.getByTestId('notebook-menu-dropdown').click();
  await own.getByTestId('notebook-menu-dropdown-Export…').click();
  await own.getByTestId('export-format-ipynb').first().click();
  for (const part of ['export-format-pdf', 'export-cli-command'])
    assert.equal(await own.getByTestId(part).first().isVisible(), false, part);
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    own.getByTestId('export-submit').click(),
  ]);
  assert.match(download.suggestedFilename(), /\.ipynb$/);
  await page.keyboard.press('Escape');
  // A click of a script begins to drag the button of the panel, as one of a screen reader does.
  const show = async (panel: string) => {
    await own.locator(`[data-key="${panel}"]`).click();
    await page.keyboard.press('Escape');
  };
  await show('packages');
  await own.getByPlaceholder(/Troupe/).waitFor();
  await show('files');
  const file = own.getByRole('treeitem').filter({ hasText: 'seeds.txt' });
  const choose = async (item: string) => {
    await file.hover();
    await file.getByTestId('file-explorer-more-button').click();
    await own.getByTestId(`file-explorer-${item}-menu-item`).click();
  };
  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  const [saved] = await Promise.all([page.waitForEvent('download'), choose('download')]);
  assert.equal(saved.suggestedFilename(), 'seeds.txt');
  assert.equal(readFileSync(await saved.path(), 'utf8'), 'to be sown');
  assert.ok(
    asked.some((url) => url.endsWith('/api/files/download?path=%2Fseeds.txt')),
    asked.join('\n'),
  );
  await choose('duplicate');
  await own.getByText('seeds_copy.txt').first().waitFor();
  assert.equal(Buffer.from((await client.files.get('seeds_copy.txt')).bytes).toString(), 'to be sown');
  await own.getByTestId('footer-panel').click();
  await show('secrets');
  await own.locator('div.border-b > button:has(svg.lucide-plus)').click();
  await own.getByPlaceholder('MY_SECRET_KEY').fill('TOKEN');
  await own.locator('#value').fill('a-value-to-hide');
  await own.getByRole('button', { name: 'Add Secret' }).click();
  await own.getByText('TOKEN', { exact: true }).first().waitFor();
  const [secret] = await client.notebooks.secrets(notebook.id);
  assert.equal(secret?.name, 'TOKEN');

  await show('snippets');
  await own.getByText('DuckDB: CSV File Ingestion').click();
  await own.getByRole('button', { name: 'Insert snippet' }).first().click();
  await eventually('the snippet is in the notebook', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    return serialization.cells.some(({ code }) => code.startsWith('csv_path = ')) || undefined;
  });
  await own.getByText('seeds.txt').first().dblclick();
  await own.getByText('to be sown').first().waitFor();
  await notebook.close();
});
