import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const SHOW = 'import marimo as mo, json, sys\nprint(json.dumps([mo.cli_args().to_dict(), sys.argv[1:]]))';

test('256 arguments of 8192 characters are accepted, and more or longer arguments are refused', async () => {
  const { id } = await server.client.notebooks.create({});
  const open = (words: readonly unknown[]) =>
    server.request('POST', '/api/v3/notebook-sessions', {
      body: { notebookId: id, environmentId: 'env_none', arguments: words },
    });
  for (const [words, status] of [
    [Array(256).fill('x'), 404],
    [Array(257).fill('x'), 400],
    [['x'.repeat(8192)], 404],
    [['x'.repeat(8193)], 400],
    [['a\0b'], 400],
    [[3], 400],
  ] as const)
    assert.equal((await open(words)).status, status);
});

test('a session takes arguments like `marimo run notebook.py --`, and keeps them when its kernel dies and the server restarts', async () => {
  const words = [
    '--month=3',
    '--region',
    'eu',
    '--tag=a',
    '--tag=b',
    '-v',
    '--ratio=-0.5',
    '--on=true',
    '--text=two words',
  ];
  const expected = [
    { month: 3, region: 'eu', tag: ['a', 'b'], v: '', ratio: -0.5, on: true, text: 'two words' },
    words,
  ];
  const notebook = await openNotebook(
    server,
    { show: SHOW, die: 'import os\nos._exit(1)' },
    { arguments: words },
  );
  assert.deepEqual(notebook.session.arguments, words);
  const shown = async (client = server.client) => {
    const { runId } = await client.executions.submit(notebook.id, {
      type: 'cells',
      cells: [{ cellId: 'show' }],
    });
    const run = await client.waitForRun(runId);
    return JSON.parse(results(run).map(printed).join(''));
  };
  assert.deepEqual(await shown(), expected);
  await notebook.run(['die']);
  await server.client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual(await shown(), expected);
  const { client } = await server.restart();
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual(await shown(client), expected);
  await client.notebookSessions.close(notebook.id);
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
  await client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual(await shown(client), [{}, []], 'the next session has its own');
});
