/** marimo's own tutorials, as the installed package brings them: they run to their end, and what fails is meant to. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { results } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
const python = process.env.TROUPE_PYTHON || '.venv/bin/python';
const packageDirectory = execFileSync(python, [
  '-c',
  'import marimo, os; print(os.path.dirname(marimo.__file__))',
]);

/** What the cells that fail say, in order. `sql` is not here: it loads an extension from the network. */
const FAILING: Readonly<Record<string, readonly RegExp[]>> = {
  // They show what a notebook must not have.
  dataflow: [
    /^NameError: Name `_private_variable` is not defined\..* in the cell \w+$/,
    /^planet is also defined in \w+$/,
    /^planet is also defined in \w+$/,
    /^count is also defined in \w+$/,
    /^count is also defined in \w+$/,
    /^the cells depend on each other in a cycle/,
    /^the cells depend on each other in a cycle/,
  ],
  for_jupyter_users: [
    /^This needs the cell \w+, which cannot run: df is also defined in \w+$/,
    /^df is also defined in \w+$/,
    /^df is also defined in \w+$/,
  ],
  // It prints its own file: a notebook of a server has a place among its workspace's files, and is none of them.
  fileformat: [/^FileNotFoundError: .*\.py'$/, /^Ancestor raised/],
  external_dependencies: [],
  intro: [],
  layout: [],
  markdown: [],
  plots: [],
  ui: [],
};

for (const [name, failing] of Object.entries(FAILING)) {
  test(`the tutorial ${name} runs, and only the cells fail that are meant to`, async () => {
    const path = join(String(packageDirectory).trim(), '_tutorials', `${name}.py`);
    const notebook = await client.notebooks.import({ format: 'py', content: readFileSync(path, 'utf8') });
    const { environmentId } = await client.executionEnvironments.create();
    await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
    await client.notebookSessions.waitUntilReady(notebook.id);
    const { runId } = await client.executions.submit(notebook.id, { type: 'all', structuralErrors: 'skip' });
    const run = await client.waitForRun(runId);
    const failed = results(run).filter(({ status }) => status !== 'success');
    const texts = failed.map(({ outputs }) => outputs[0]?.text ?? '');
    assert.equal(texts.length, failing.length, texts.join('\n'));
    for (const [at, says] of failing.entries()) assert.match(texts[at] ?? '', says);
    assert.deepEqual(
      (run.output?.parts ?? []).filter(({ type }) => type === 'warning'),
      [],
    );
    await client.notebookSessions.close(notebook.id);
  });
}
