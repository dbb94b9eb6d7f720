/** The pages for people, as Chromium shows them: signing in with an access token, and the list of notebooks. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { NARROW, notebookIn, openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { signInByHand } from './sign-in-by-hand.ts';

const skip = withoutBrowser;
const server = await startServer(test);
const browser = skip === false ? await openBrowser(test) : undefined;

const signIn = (token?: string, path?: string) => signInByHand(browser!, server, token, path);

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

test('the list finds notebooks by title, and shows more on demand', { skip }, async () => {
  for (let i = 0; i < 35; i++) await server.client.notebooks.create({ title: `Report ${i}` });
  const { page, complaints } = await signIn();
  await page.getByRole('button', { name: /^Report 34/ }).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Sales of a month' }).count(), 0);
  await page.getByLabel('Search titles').fill('sales');
  await page.getByRole('button', { name: 'Sales of a month' }).waitFor();
  await page.getByRole('button', { name: /^Report/ }).waitFor({ state: 'detached' });
  await page.getByLabel('Search titles').fill('nothing like this');
  await page.getByText('No title contains this text').waitFor();
  await page.getByLabel('Search titles').fill('');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.getByRole('button', { name: 'Weather' }).waitFor();
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

test('opening a notebook opens a session if necessary, and leads to the page of the notebook, whose cells run', {
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

test('a person who types the code of a command line sees the machine and a warning, and confirms or refuses the sign-in', {
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
