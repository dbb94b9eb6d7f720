/** The address of a notebook in the answers of the API. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

/** Every answer that shows a notebook or a session, with the addresses in it. */
async function urlsIn(server: Awaited<ReturnType<typeof startServer>>) {
  const { client } = server;
  const notebook = await openNotebook(server, { a: '1' }, { title: 'Addressed' });
  const { id } = notebook;
  const session = await client.notebookSessions.get(id);
  const { items: sessions } = await client.notebookSessions.list({ notebookId: id });
  const closed = await client.notebookSessions.close(id);
  const { items } = await client.notebooks.list({ title: 'Addressed' });
  const read = await client.notebooks.get(id);
  const changed = await client.notebooks.update(id, {
    expectedUpdatedAt: read.updatedAt,
    metadata: { a: 'b' },
  });
  const version = await client.notebooks.version(id, changed.updatedAt);
  const restored = await client.notebooks.restore(id, changed.updatedAt, {
    expectedUpdatedAt: changed.updatedAt,
  });
  const shown = [session, ...sessions, closed, ...items, read, changed, version, restored];
  const imported = await client.notebooks.import({ format: 'py', content: 'x = 1\n' });
  assert.equal(imported.url.endsWith(`/n/${imported.id}/`), true);
  return { id, urls: [...new Set(shown.map(({ url }) => url))], shown: shown.length };
}

test('the url member of notebooks and sessions is the path of their page', async () => {
  const server = await startServer(test);
  const { id, urls, shown } = await urlsIn(server);
  assert.deepEqual([urls, shown], [[`/n/${id}/`], 8]);
});

test('with TROUPE_PUBLIC_URL the url member contains the whole address', async () => {
  const server = await startServer(test, { TROUPE_PUBLIC_URL: 'https://troupe.example/base/' });
  const { id, urls } = await urlsIn(server);
  assert.deepEqual(urls, [`https://troupe.example/base/n/${id}/`]);
});

test('a browser gets a page in place of JSON for a used one-time address and for an unknown path', async () => {
  const server = await startServer(test);
  const notebook = await openNotebook(server, { a: '1' });
  const { url } = await server.client.notebookSessions.page(notebook.id);
  const go = (path: string, accept: string) =>
    fetch(server.baseUrl + path, { headers: { accept }, redirect: 'manual' });
  assert.equal((await go(url, 'text/html')).status, 303);
  const again = await go(url, 'text/html,*/*');
  assert.deepEqual([again.status, again.headers.get('location')], [303, '../']);
  assert.equal((await go(url, '*/*')).headers.get('content-type'), 'application/problem+json');
  const unknown = await go('/no/such/page', 'text/html,*/*');
  assert.deepEqual([unknown.status, unknown.headers.get('content-type')], [404, 'text/html; charset=utf-8']);
  assert.match(await unknown.text(), /href="\.\.\/\.\.\/"/);
  assert.equal((await go('/no/such/page', '*/*')).headers.get('content-type'), 'application/problem+json');
  assert.equal((await go('/api/v3/no', 'text/html')).headers.get('content-type'), 'application/problem+json');
  await notebook.close();
});
