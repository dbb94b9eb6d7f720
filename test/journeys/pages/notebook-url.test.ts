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

test('notebooks and sessions have the path of their page as url', async () => {
  const server = await startServer(test);
  const { id, urls, shown } = await urlsIn(server);
  assert.deepEqual([urls, shown], [[`/n/${id}/`], 8]);
});

test('with TROUPE_PUBLIC_URL the url is the whole address', async () => {
  const server = await startServer(test, { TROUPE_PUBLIC_URL: 'https://troupe.example/base/' });
  const { id, urls } = await urlsIn(server);
  assert.deepEqual(urls, [`https://troupe.example/base/n/${id}/`]);
});
