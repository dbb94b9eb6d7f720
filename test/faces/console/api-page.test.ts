// tier: whole, because it lets a browser read all of the interactive documentation
/** The page of the API, as Chromium shows it. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

test('the page of the API lists operations, sends a request with a token, and asks no other host', {
  skip: withoutBrowser,
}, async (t) => {
  const browser = await openBrowser(t);
  const { page, complaints } = await browser.openPath(server, '/docs');
  await page.getByRole('button', { name: 'Authorize' }).click();
  const dialog = page.locator('.auth-container');
  await dialog.first().locator('input').fill(OWNER.token);
  await dialog.first().getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.first().getByRole('button', { name: 'Close' }).click();
  await page.locator('#operations-tag-Identity').click();
  const operation = page.locator('#operations-Identity-getMe');
  await operation.locator('.opblock-summary-control').click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute' }).click();
  const response = operation.locator('.live-responses-table .response-col_status').last();
  assert.match((await response.textContent()) ?? '', /200/);
  assert.deepEqual(complaints, []);
  const kept = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])');
  assert.ok(!kept.includes(OWNER.token), 'the page keeps no token');
});

test('the files of the page can be cached for ever, the page itself is revalidated, and links reach it with a slash', async () => {
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${server.baseUrl}${path}`, { headers, redirect: 'manual' });
  const page = await get('/docs');
  assert.equal(page.headers.get('cache-control'), 'no-cache');
  assert.ok(!(page.headers.get('content-security-policy') ?? "'unsafe").includes("'unsafe"));
  assert.equal((await get('/docs', { 'if-none-match': page.headers.get('etag')! })).status, 304);
  const files = [...(await page.text()).matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, path]) => path);
  assert.equal(files.length, 3);
  for (const path of files) {
    const file = await get(`/${path}`);
    assert.equal(file.status, 200, path);
    assert.match(file.headers.get('cache-control') ?? '', /immutable/);
  }
  const redirect = await get('/docs/');
  assert.deepEqual([redirect.status, redirect.headers.get('location')], [308, '../docs']);
  assert.equal(redirect.headers.get('content-length'), '0', 'no client waits for a body');
  assert.equal((await get('/docs/index.html')).status, 404);
  assert.equal((await get('/docs/..%2Fserver%2Fmain.js')).status, 404);
});
