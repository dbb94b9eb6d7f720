/** The list of notebooks in a browser. */
import type { TestBrowser, WatchedPage } from '#test/support/browser.ts';
import { OWNER, type TestServer } from '#test/support/server-fixture.ts';

/** Signs in as a person does, who opens an address of the server. Resolves with the page. */
export async function signInByHand(
  browser: TestBrowser,
  server: TestServer,
  token = OWNER.token,
  path = '/',
): Promise<WatchedPage> {
  await browser.context.clearCookies();
  const opened = await browser.openPath(server, path);
  await opened.page.getByLabel('Access token').fill(token);
  await opened.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await opened.page.getByRole('heading', { name: 'Notebooks' }).waitFor();
  return opened;
}
