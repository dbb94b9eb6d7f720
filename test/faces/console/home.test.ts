/** The pages for people, as Chromium shows them: signing in with an access token, and the list of notebooks. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { NARROW, notebookIn, openBrowser, type WatchedPage, withoutBrowser } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;

/** Opens the address of the server and signs in there. */
async function signIn(token = OWNER.token, path = '/'): Promise<WatchedPage> {
  await browser!.context.clearCookies();
  const opened = await browser!.openPath(server, path);
  await opened.page.getByLabel('Access token').fill(token);
  await opened.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await opened.page.getByRole('heading', { name: 'Notebooks' }).waitFor();
  return opened;
}

test('a person who opens the address of the server signs in and sees the notebooks, and the page keeps no secret', {
  skip,
}, async () => {
  await server.client.notebooks.create({ title: 'Sales of a month' });
  await server.client.notebooks.create({ title: 'Weather' });
  const { page, complaints } = await signIn();
  assert.equal(new URL(page.url()).pathname, '/');
  await page.getByRole('button', { name: 'Sales of a month' }).waitFor();
  await page.getByRole('button', { name: 'Weather' }).waitFor();
  const kept = await page.evaluate<string>(
    'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])',
  );
  assert.doesNotMatch(kept, /tr[ps]_|troupe-session/);
  assert.ok(!kept.includes(OWNER.token));
  await page.reload();
  await page.getByRole('button', { name: 'Weather' }).waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

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
  await page.getByLabel('Access token').fill('a-token-that-nobody-has');
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByRole('alert').getByText('Nobody has this access token').waitFor();
  await page.close();
});

test('the list finds notebooks by title, and shows more on demand', { skip }, async () => {
  for (let i = 0; i < 35; i++) await server.client.notebooks.create({ title: `Report ${i}` });
  const { page, complaints } = await signIn();
  await page.getByRole('button', { name: /^Report 34/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Sales of a month' }).count(), 0);
  await page.getByLabel('Search titles').fill('sales');
  await page.getByRole('button', { name: 'Sales of a month' }).waitFor();
  await page.getByRole('button', { name: /^Report/ }).waitFor({ state: 'detached' });
  await page.getByLabel('Search titles').fill('nothing like this');
  await page.getByText('No title contains this').waitFor();
  await page.getByLabel('Search titles').fill('');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Weather' }).waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('files that are dropped on the page become notebooks with their titles, and refused files are named', {
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
  await drop([['picture.png', 'no notebook']]);
  await page.getByRole('alert').getByText('picture.png is not a notebook').waitFor();
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

test('a viewer sees the notebooks but can neither create nor import, and signing out leads to the sign-in page', {
  skip,
}, async () => {
  const viewer = await addMember(server, 'vera', 'viewer');
  const { page, complaints } = await signIn(viewer.token);
  await page.getByRole('button', { name: /^Report 34/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'New notebook' }).count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Import' }).count(), 0);
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByLabel('Access token').waitFor();
  await page.goto(`${server.baseUrl}/`);
  await page.getByLabel('Access token').waitFor();
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

test('opening a notebook opens a session on it if there is none, and leads to its page, whose cells run', {
  skip,
}, async () => {
  const serialization = { cells: [{ cell_id: 'a', code: "print('in the browser')" }] };
  const { id } = await server.client.notebooks.create({ title: 'To be opened', serialization });
  const { page } = await signIn();
  await page.getByRole('button', { name: 'To be opened' }).click();
  await page.waitForURL(`${server.baseUrl}/n/${id}/`);
  await notebookIn(page).locator('#cell-a [data-testid="run-button"]').first().click();
  await notebookIn(page).locator('#cell-a').getByText('in the browser', { exact: true }).first().waitFor();
  const { items } = await server.client.notebookSessions.list({ notebookId: id, status: 'open' });
  assert.equal(items.length, 1);
  await page.close();
});

test('the address of a notebook leads to signing in and back, and then to its page on the open session', {
  skip,
}, async () => {
  const notebook = await openNotebook(server, { a: "print('reached')" }, { title: 'Sent by mail' });
  await browser!.context.clearCookies();
  const { page } = await browser!.openPath(server, `/n/${notebook.id}/?utm_source=mail`);
  await page.getByLabel('Access token').fill(OWNER.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.waitForURL(new RegExp(`/n/${notebook.id}/`));
  await notebookIn(page).locator('#cell-a [data-testid="run-button"]').first().waitFor();
  await page.close();
  await notebook.close();
});

test('the address of a notebook opens no session by itself, but opens one at a click', { skip }, async () => {
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

test('a person types the code of a command line, sees its machine and a warning, and confirms or refuses the sign-in', {
  skip,
}, async () => {
  const begin = async () => {
    const response = await fetch(`${server.baseUrl}/sign-in/command-line`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ machine: '<b>ada</b>@laptop' }),
    });
    return (await response.json()) as {
      readonly secret: string;
      readonly code: string;
      readonly url: string;
    };
  };
  const statusOf = async (secret: string) => {
    const response = await fetch(`${server.baseUrl}/sign-in/command-line/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ secret }),
    });
    return ((await response.json()) as { readonly status: string }).status;
  };
  await browser!.context.clearCookies();
  const { page, complaints } = await browser!.openPath(server, '/sign-in?command-line');
  await page.getByLabel('Access token').fill(OWNER.token);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await page.getByLabel('Code').waitFor(); // otherwise the page that follows the sign-in would interrupt the next one
  for (const [button, status] of [
    ['Confirm', 'confirmed'],
    ['Refuse', 'refused'],
  ] as const) {
    const { secret, code } = await begin();
    await page.goto(`${server.baseUrl}/sign-in?command-line`);
    await page.getByLabel('Code').fill(code.toLowerCase());
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('<b>ada</b>@laptop').waitFor();
    await page.getByRole('alert').getByText('Confirm only if you have started').waitFor();
    assert.equal(await statusOf(secret), 'waiting');
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('status').waitFor();
    assert.equal(await statusOf(secret), status);
  }
  await page.goto(`${server.baseUrl}/sign-in?command-line`);
  await page.getByLabel('Code').fill('BCDF-BCDF');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByRole('alert').getByText('No command line waits with this code').waitFor();
  assert.deepEqual(complaints, []);
  await page.close();
});

test('on a phone nothing is wider than the screen, and the page of a notebook is dark where the system is', {
  skip,
}, async () => {
  const title = `A long title ${'that goes on and on '.repeat(8)}`;
  await server.client.notebooks.create({ title });
  const { page } = await signIn();
  const widths = (one: typeof page, selector: string) =>
    one.evaluate<[number, number]>(
      `(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth])(document.querySelector('${selector}'))`,
    );
  await page.setViewportSize(NARROW);
  await page.getByRole('button', { name: /^A long title/ }).waitFor();
  const [width, wanted] = await widths(page, 'html');
  assert.equal(wanted, width);
  await page.close();
  const notebook = await openNotebook(server, { a: '1' }, { title });
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const { page: other } = await browser!.openPath(server, url, {
    prepare: (one) => one.emulateMedia({ colorScheme: 'dark' }),
  });
  await other.setViewportSize(NARROW);
  await other.getByRole('heading', { name: /^A long title/ }).waitFor();
  await notebookIn(other).locator('body[data-theme="dark"]').waitFor();
  const [headerWidth, headerWanted] = await widths(other, '.notebook-place > header');
  assert.equal(headerWanted, headerWidth);
  await other.close();
  await notebook.close();
});
