/** Large requests of a page, whose answers are made in slices. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

test('a page gets the code of a large notebook, and its JSON is not made at once', async (t) => {
  const notebook = await openNotebook(server, { a: '# a "line" ä\n'.repeat(200_000) });
  await using page = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  await page.follow();
  let longest = 0;
  const stringify = JSON.stringify;
  t.mock.method(JSON, 'stringify', (value: unknown) => {
    const json = stringify(value);
    longest = Math.max(longest, json?.length ?? 0);
    return json;
  });
  const response = await page.send('kernel/read_code', {});
  const answer = await response.text();
  t.mock.restoreAll();
  assert.ok(longest < 256 * 1024, `${longest} characters were encoded at once`);
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  const { contents } = JSON.parse(answer) as { contents: string };
  assert.equal(contents.split('# a "line" ä\n').length, 200_001);
  await notebook.close();
});
