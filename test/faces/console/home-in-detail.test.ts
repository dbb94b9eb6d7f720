// tier: whole, because each test keeps a browser busy, and one file of this kind is in `npm test`
/** The list of notebooks in Chromium, as people use it: `home.test.ts` has the main journey. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { signInByHand } from './sign-in-by-hand.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;

const signIn = (token?: string, path?: string) => signInByHand(browser!, server, token, path);

test('a wrong token is refused with the reason, and a link to another host is not followed after signing in', {
  skip,
}, async () => {
  await browser!.context.clearCookies();
  for (const to of ['https://evil.example/', '//evil.example/', '/\\evil.example', 'javascript:alert(1)']) {
    const { page, complaints } = await signIn(OWNER.token, `/sign-in?to=${encodeURIComponent(to)}`);
    assert.equal(page.url(), `${server.baseUrl}/`, to);
    assert.deepEqual(complaints, []);
    await page.close();
  }
  await browser!.context.clearCookies();
  const { page } = await browser!.openPath(server, '/sign-in');
  await page.locator('input[name=token]:focus').waitFor();
  await page.keyboard.type('a-token-that-nobody-has');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('Nobody has this access token').waitFor();
  await page.close();
});

test('files that are dropped on the page become notebooks, and the page names refused files', {
  skip,
}, async () => {
  const { page, complaints } = await signIn();
  const drop = (files: readonly (readonly [name: string, content: string])[]) =>
    page.evaluate(
      `(() => {
        const data = new DataTransfer();
        for (const [name, content] of ${JSON.stringify(files)}) data.items.add(new File([content], name));
        document.querySelector('main').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
      })()`,
    );
  const ipynb = JSON.stringify({
    cells: [{ cell_type: 'code', source: ['x = 1'], metadata: {}, outputs: [], execution_count: null }],
    metadata: {},
    nbformat: 4,
    nbformat_minor: 5,
  });
  await drop([
    ['Dropped one.ipynb', ipynb],
    ['two.md', '# Hello\n\n```python {.marimo}\nx = 1\n```\n'],
    [
      'three.py',
      'import marimo\n\napp = marimo.App(app_title="Titled in the file")\n\n@app.cell\ndef _():\n    return\n',
    ],
  ]);
  await page.getByRole('button', { name: 'Dropped one' }).waitFor();
  await page.getByRole('button', { name: 'two' }).waitFor();
  await page.getByRole('button', { name: 'Titled in the file' }).waitFor();
  await drop([
    ['picture.png', 'no notebook'],
    ['broken.ipynb', '{'],
    ['after them.md', 'text'],
  ]);
  await page.getByRole('alert').getByText('picture.png was not imported').waitFor();
  await page.getByRole('alert').getByText('broken.ipynb was not imported').waitFor();
  await page.getByRole('button', { name: 'after them' }).waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a notebook is renamed, duplicated and deleted in the list, which names its owner', {
  skip,
}, async () => {
  const serialization = { cells: [{ cell_id: 'a', code: 'a = 1' }] };
  const { id } = await server.client.notebooks.create({ title: 'To be changed', serialization });
  const { user } = await server.client.me();
  const { page, complaints } = await signIn();
  const row = (title: string) =>
    page.getByRole('region', { name: 'Notebooks' }).getByRole('listitem').filter({ hasText: title });
  await row('To be changed').getByText(user.id).waitFor();
  page.once('dialog', (dialog) => dialog.accept('Changed title'));
  await page.getByLabel('Actions on To be changed').click();
  await row('To be changed').getByRole('button', { name: 'Rename' }).click();
  await row('Changed title').waitFor();
  assert.equal((await server.client.notebooks.get(id)).title, 'Changed title');
  await page.reload();
  await page.getByLabel('Actions on Changed title', { exact: true }).click();
  await row('Changed title').getByRole('button', { name: 'Duplicate' }).click();
  await row('Copy of Changed title').waitFor();
  const { items } = await server.client.notebooks.list({ title: 'Changed title' });
  assert.equal(items.length, 2);
  await page.reload();
  await page.getByLabel('Actions on Copy of Changed title').click();
  await row('Copy of Changed title').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('This cannot be undone').waitFor();
  assert.equal((await server.client.notebooks.list({ title: 'Changed title' })).items.length, 2);
  await row('Copy of Changed title').getByRole('button', { name: 'Delete' }).click();
  await row('Copy of Changed title').waitFor({ state: 'detached' });
  assert.equal((await server.client.notebooks.list({ title: 'Changed title' })).items.length, 1);
  await page.getByRole('link', { name: 'Console' }).waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('an open notebook is renamed and deleted once the person agrees that its session is closed', {
  skip,
}, async () => {
  const { id } = await server.client.notebooks.create({ title: 'Still open' });
  const open = async () => {
    const { environmentId } = await server.client.executionEnvironments.create();
    await server.client.notebookSessions.open({ notebookId: id, environmentId });
  };
  await open();
  const { page, complaints } = await signIn();
  const row = (title: string) =>
    page.getByRole('region', { name: 'Notebooks' }).getByRole('listitem').filter({ hasText: title });
  /** Presses a button, and resolves with the question that follows once it is answered. */
  const asked = async (title: string, label: string, press: () => Promise<void>, isYes: boolean) => {
    const question = page.waitForEvent('dialog', (dialog) => dialog.type() === 'confirm');
    const pressed = press(); // ends once the question is answered
    const dialog = await question;
    assert.match(
      dialog.message(),
      new RegExp(`^${title} is open\\. Its session has to be closed first`),
      label,
    );
    await (isYes ? dialog.accept() : dialog.dismiss());
    await pressed;
  };
  const press = (title: string, label: string) => () =>
    row(title).getByRole('button', { name: label }).click();
  const answerPrompt = () =>
    page.once('dialog', (dialog) => void (dialog.type() === 'prompt' && dialog.accept('Renamed while open')));
  await page.getByLabel('Actions on Still open').click();
  answerPrompt();
  await asked('Still open', 'no', press('Still open', 'Rename'), false);
  await row('Still open').getByRole('button', { name: 'Rename', exact: true }).waitFor();
  assert.notEqual((await server.client.notebookSessions.get(id)).status, 'closed');
  answerPrompt();
  await asked('Still open', 'rename', press('Still open', 'Rename'), true);
  await row('Renamed while open').waitFor();
  assert.equal((await server.client.notebooks.get(id)).title, 'Renamed while open');
  await open();
  await page.reload();
  await page.getByLabel('Actions on Renamed while open').click();
  await press('Renamed while open', 'Delete')();
  await page.getByText('This cannot be undone').waitFor();
  await asked('Renamed while open', 'delete', press('Renamed while open', 'Delete'), true);
  await row('Renamed while open').waitFor({ state: 'detached' });
  assert.equal((await server.client.notebooks.list({ title: 'Renamed while open' })).items.length, 0);
  assert.ok(
    complaints.every((complaint) => complaint.includes('409')),
    complaints.join(),
  );
  await page.close();
});

test('open sessions are shown as running, and closed ones as recently opened', { skip }, async () => {
  const { id } = await server.client.notebooks.create({ title: 'At work' });
  const { environmentId } = await server.client.executionEnvironments.create();
  await server.client.notebookSessions.open({ notebookId: id, environmentId });
  const { page, complaints } = await signIn();
  await page.getByRole('region', { name: 'Running' }).getByRole('button', { name: 'At work' }).waitFor();
  await server.client.notebookSessions.close(id);
  await page
    .getByRole('region', { name: 'Recently opened' })
    .getByRole('button', { name: 'At work' })
    .waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('when the session ends elsewhere, the page leads to the sign-in page, and back afterwards', {
  skip,
}, async () => {
  const ada = await addMember(server, 'ada', 'editor');
  const { page } = await signIn(ada.token);
  await server.client.members.delete('ada');
  await page.getByLabel('Access token').waitFor();
  assert.equal(new URL(page.url()).searchParams.get('to'), '/');
  await page.close();
});

test('the address of a notebook opens a session only at a click', { skip }, async () => {
  const serialization = { cells: [{ cell_id: 'a', code: '1' }] };
  const { id } = await server.client.notebooks.create({ title: 'Not open', serialization });
  const { page: home } = await signIn();
  await home.close();
  const { page } = await browser!.openPath(server, `/n/${id}/`);
  await page.getByRole('button', { name: 'Open', exact: true }).waitFor();
  await page.getByText('Not open').waitFor();
  const sessions = () => server.client.notebookSessions.list({ notebookId: id });
  assert.deepEqual((await sessions()).items, []);
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await notebookIn(page).locator('#cell-a [data-testid="run-button"]').first().waitFor();
  await server.client.notebookSessions.close(id);
  await page.goto(`${server.baseUrl}/n/${id}/`);
  await page.getByRole('button', { name: 'Open', exact: true }).waitFor();
  assert.equal((await sessions()).items[0]?.status, 'closed');
  await page.close();
});

test('a viewer can look at a notebook by its address, and nobody sees notebooks of other workspaces', {
  skip,
}, async () => {
  const notebook = await openNotebook(server, { a: '1' }, { title: 'Looked at' });
  const viewer = await addMember(server, 'victor', 'viewer');
  const { page: home } = await signIn(viewer.token);
  await home.close();
  const { page } = await browser!.openPath(server, `/n/${notebook.id}/`);
  await notebookIn(page).locator('.cm-content, #cell-a').first().waitFor();
  assert.equal(await notebookIn(page).locator('#cell-a [data-testid="run-button"]').count(), 0);
  await page.close();
  const { page: other } = await browser!.openPath(server, '/n/nb_01j0000000000000000000/');
  await other.getByText('There is no such notebook in your workspaces').waitFor();
  await other.close();
  await notebook.close();
});

test('signing out everywhere asks first, and ends the sessions of other browsers as well', {
  skip,
}, async () => {
  const eve = await addMember(server, 'eve', 'editor');
  const { page } = await signIn(eve.token);
  const other = await fetch(`${server.baseUrl}/sign-in`, {
    method: 'POST',
    headers: { authorization: `Bearer ${eve.token}`, origin: server.baseUrl },
  });
  const cookie = other.headers.get('set-cookie')?.split(';')[0] ?? '';
  const me = () => fetch(`${server.baseUrl}/api/v3/me`, { headers: { cookie } });
  const button = page.getByRole('button', { name: 'Sign out everywhere' });
  await button.click();
  await page.getByText('All browsers in which you have signed in').waitFor();
  assert.equal((await me()).status, 200);
  await button.click();
  await page.getByLabel('Access token').waitFor();
  assert.equal((await me()).status, 401);
  await page.close();
});
