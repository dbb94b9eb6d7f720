/** One round of mixed use. A round deletes everything that it creates. */
import assert from 'node:assert/strict';
import type { ChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { ScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const LARGE = 100_000;

/**
 * Works in a notebook as people, programs and agents do: files, a datasource, runs with a large output and a failure, a stream
 * that is cut, code, a prompt, a cancel; then deletes all of it.
 */
export async function workOneRound(server: ChildServer, model: ScriptedModel, name: string): Promise<void> {
  const { client } = server;
  await client.files.put(`${name}/sales.csv`, Buffer.from('n\n1\n2\n'));
  await client.files.put(`${name}/sales.db`, Buffer.alloc(0));
  await client.datasources.create({ slug: name, connection: { kind: 'sqlite', path: `${name}/sales.db` } });
  const notebook = await openNotebook(
    server,
    {
      read: `total = sum(int(line) for line in open("${name}/sales.csv").readlines()[1:])`,
      large: `import marimo as mo; mo.Html(str(total) * ${LARGE})`,
      broken: '1 / 0',
      endless: 'import time\nwhile True: time.sleep(0.05)',
    },
    { datasourceSlugs: [name] },
  );
  const events = await notebook.events();
  const run = await notebook.run(['large']);
  assert.equal(run.status, 'completed');
  assert.equal((await notebook.run(['broken'])).status, 'failed');
  await events[Symbol.asyncDispose]();
  const endless = await notebook.submit(['endless']);
  await client.runs.cancel(endless);
  assert.equal((await client.waitForRun(endless)).status, 'cancelled');
  assert.equal((await client.code.execute(notebook.id, 'print(total)')).stdout.trim(), '3');
  model.script((exchange) => exchange.text('Done.').end());
  const { sessionId } = await client.agentSessions.open({
    environmentId: notebook.environmentId,
    config: { model: 'openai-compatible/scripted' },
  });
  const { runId } = await client.agentSessions.prompt(sessionId, 'Do it.');
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  await client.runs.list({ limit: 20 });
  await client.usage();
  await client.agentSessions.delete(sessionId);
  await notebook.close();
  await client.executionEnvironments.close(notebook.environmentId);
  await client.notebooks.delete(notebook.id);
  await client.datasources.delete(name);
  for (const file of ['sales.csv', 'sales.db', '']) await client.files.delete(`${name}/${file}`);
}
