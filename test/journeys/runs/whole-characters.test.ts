/** Long text with characters beyond U+FFFF, which JavaScript stores as pairs, is cut at characters wherever it is cut. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, results } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

/** Returns the texts in a JSON value that contain half a pair. */
function brokenTexts(value: unknown): string[] {
  if (typeof value === 'string') return value.isWellFormed() ? [] : [value.slice(-20)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [...brokenTexts(name), ...brokenTexts(member)]);
}

test('a run with long printed text, outputs and errors of emoji has only whole characters', async () => {
  const notebook = await openNotebook(server, {
    even: `print('ba' + '😀' * 70000)`,
    odd: `print('bar' + '😀' * 70000)`,
    streamed: `for at in range(300): print('x' * (at % 2) + '😀' * 900, end='')`,
    output: `'b' + '😀' * 70000`,
    html: `import marimo as mo\nmo.Html('<p>b' + '😀' * 70000)`,
    error: `raise ValueError('b' + '😀' * 70000)`,
  });
  const run = await notebook.run([]);
  assert.equal(results(run).length, 6);
  const { body } = await server.request('GET', `/api/v3/runs/${run.id}`);
  assert.deepEqual(brokenTexts(body), []);
  const session = await server.client.notebookSessions.get(notebook.id);
  assert.deepEqual(brokenTexts(session), []);
});
