import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Stage } from './stage.ts';

export async function login(t: TestContext, { server, browser }: Stage): Promise<void> {
  await t.test('a wrong token is refused with a reason, and says nothing of the server', async () => {
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

  await t.test('a token stays for the tab when it is asked to, and ends with it', async () => {
    const { page } = await browser.open(server);
    await page.getByLabel('Access token').fill(server.owner.token);
    await page.getByLabel('Stay signed in').check();
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    const other = await browser.open(server);
    await other.page.getByLabel('Access token').waitFor();
    await other.page.close();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.reload();
    await page.getByLabel('Access token').waitFor();
    await page.close();
  });

  await t.test('a session ends, with the reason, when its token does', async () => {
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
