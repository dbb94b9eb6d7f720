/** Large requests of a page, whose answers are made in slices. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

test('a page gets the code of a large notebook, and the JSON of the code is made in slices', async (t) => {
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

test('the change of a widget with megabytes reaches other pages, and the JSON of the change is made in slices', async (t) => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  await using sender = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  await using other = await NotebookPageClient.open(server.client, server.baseUrl, notebook.id);
  await Promise.all([sender.follow(), other.follow()]);
  const value = 'A'.repeat(14_000_000);
  const message = { method: 'update', state: {}, bufferPaths: [['x']] };
  const body = JSON.stringify({ modelId: 'm', message, buffers: [value] });
  let inTurn = 0;
  let most = 0;
  const stringify = JSON.stringify;
  t.mock.method(JSON, 'stringify', (...args: Parameters<typeof JSON.stringify>) => {
    const json = stringify(...args);
    inTurn += json?.length ?? 0;
    most = Math.max(most, inTurn);
    return json;
  });
  let isOver = false;
  const count = () => {
    inTurn = 0;
    if (!isOver) setImmediate(count);
  };
  count();
  const response = await fetch(`${sender.address}api/kernel/set_model_value`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${sender.token}`,
      'content-type': 'application/json',
      'marimo-session-id': sender.pageId,
    },
    body,
  });
  assert.equal(response.status, 200);
  const { message: sent } = (await other.next(({ op }) => op === 'model-lifecycle')) as {
    readonly message: { readonly buffers: readonly string[] };
  };
  isOver = true;
  t.mock.restoreAll();
  assert.ok(sent.buffers[0] === value);
  assert.ok(most < value.length, `${most} characters were encoded in one turn`);
  await notebook.close();
});
