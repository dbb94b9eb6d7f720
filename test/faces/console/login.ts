import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Stage } from './stage.ts';

export async function login(t: TestContext, { server, browser }: Stage): Promise<void> {
  await t.test('a wrong token is refused with a reason that reveals nothing of the server', async () => {
    const { page, complaints } = await browser.open(server);
    await page.getByLabel('Access token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    const problem = page.getByRole('alert');
    await problem.waitFor();
    assert.match(
      (await problem.textContent()) ?? '',
      /A valid access token is required.*unauthenticated.*still valid/s,
    );
    assert.deepEqual(complaints, []);
    await page.close();
  });

  await t.test(
    'a token with an impossible character is not sent, and the page shows the reason',
    async () => {
      const { page, complaints } = await browser.open(server);
      const field = page.getByLabel('Access token');
      await field.fill(`\u200b${server.owner.token}`);
      await page.getByRole('button', { name: 'Sign in' }).click();
      assert.equal(await field.evaluate((input) => input.matches(':invalid')), true);
      assert.match((await field.getAttribute('title')) ?? '', /copy the token again/);
      await field.fill(` ${server.owner.token} `);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
      assert.deepEqual(complaints, []);
      await page.close();
    },
  );

  await t.test('a token opens the workspace, and signing out forgets it', async () => {
    const { page, complaints } = await browser.signIn(server);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    const kept = await page.evaluate<string>(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])',
    );
    assert.equal(kept.includes(server.owner.token), false);
    assert.match(page.url(), /\/console#\/ws_home\/overview$/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Access token').waitFor();
    assert.equal((await page.content()).includes(server.owner.token), false);
    await page.reload();
    await page.getByLabel('Access token').waitFor();
    assert.deepEqual(complaints, []);
    await page.close();
  });

  await t.test('a token stays for the tab on request, and ends with it', async () => {
    const { page } = await browser.open(server);
    await page.getByLabel('Access token').fill(server.owner.token);
    await page.getByLabel('Stay signed in').check();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    let answerNow = () => {};
    const mayAnswer = new Promise<void>((resolve) => {
      answerNow = resolve;
    });
    await page.route('**/api/v3/me', async (route) => {
      await mayAnswer;
      await route.continue();
    });
    await page.reload();
    await page.getByText('Loading …').waitFor();
    answerNow();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const other = await browser.open(server);
    await other.page.getByLabel('Access token').waitFor();
    await other.page.close();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.reload();
    await page.getByLabel('Access token').waitFor();
    await page.close();
  });

  await t.test(
    'a person who has signed in with the browser needs no token, and signs out of the console and the browser at once',
    async () => {
      const { page: home } = await browser.openPath(server, '/sign-in?to=%2Fconsole%23%2Fws_home%2Fruns');
      await home.getByLabel('Access token').fill(server.owner.token);
      await home.getByRole('button', { name: 'Sign in', exact: true }).click();
      await home.getByRole('heading', { level: 1, name: 'Runs' }).waitFor();
      const { page, complaints } = await browser.open(server);
      await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
      await page.getByRole('heading', { name: 'Running longest' }).waitFor();
      assert.deepEqual(complaints, []);
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
      await page.waitForURL(`${server.baseUrl}/sign-in`);
      await home.reload();
      await home.getByRole('link', { name: 'sign in with this browser' }).click();
      await home.waitForURL(/\/sign-in\?to=%2Fconsole%23/);
      await Promise.all([home.close(), page.close()]);
    },
  );

  await t.test('a browser session that ends elsewhere also ends in the console, with a notice', async () => {
    const { page: home } = await browser.openPath(server, '/sign-in?to=%2Fconsole');
    await home.getByLabel('Access token').fill(server.owner.token);
    await home.getByRole('button', { name: 'Sign in', exact: true }).click();
    await home.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    const out = await home.evaluate<number>(
      "fetch('/sign-out', { method: 'POST' }).then(({ status }) => status)",
    );
    assert.equal(out, 200);
    await home.getByText('You have signed out, or your session has ended.').waitFor();
    await home.close();
  });

  await t.test('the next user of a tab sees no data of the previous user', async () => {
    const busy = await openNotebook(server, { loop: 'while True: pass' });
    const run = await busy.submit([]);
    await server.client.members.create({ userId: 'reader', role: 'viewer' });
    const { token } = await server.client.accessTokens.create({
      name: 'reader',
      userId: 'reader',
      scopes: ['workspaceRuntime:connect'],
    });
    const { page, complaints } = await browser.signIn(server);
    await page.getByRole('heading', { name: 'Notebook sessions' }).waitFor();
    await assert.rejects(busy.submit([]));
    const refusals = page.locator('.card').filter({ hasText: 'Refused since you opened the console' });
    await refusals.getByText('The session is busy').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Access token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Only owners of the workspace see what its actors do.').waitFor();
    assert.equal(await refusals.count(), 0);
    assert.equal(await page.getByRole('heading', { name: 'Notebook sessions' }).count(), 0);
    assert.deepEqual(complaints, []);
    await server.client.runs.cancel(run);
    await server.client.waitForRun(run);
    await Promise.all([busy.close(), page.close()]);
  });

  await t.test('a session in the console ends with its token, and the console shows the reason', async () => {
    const { id, token } = await server.client.accessTokens.create({
      name: 'short',
      scopes: ['workspaceRuntime:connect'],
    });
    const { page } = await browser.signIn(server, '', { token });
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await server.client.accessTokens.delete(id);
    await page.getByText('The server no longer accepts this token').waitFor();
    await page.close();
  });
}
