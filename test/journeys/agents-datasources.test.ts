import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import Database from 'libsql';
import type { Run } from '#src/client/runs.ts';
import { startScriptedModel } from '#test/support/scripted-model.ts';
import { startServer } from '#test/support/server-fixture.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;

/** Name, status and output of every call. */
const calls = (run: Run) =>
  (run.output?.parts ?? []).flatMap((part) =>
    part.type === 'tool-call' ? [[part.name, part.status, part.output]] : [],
  );

test('an agent lists, describes and queries the datasources of its conversation, reading only', async () => {
  mkdirSync(server.filesDir, { recursive: true });
  for (const slug of ['sales', 'secret']) {
    const database = new Database(join(server.filesDir, `${slug}.db`));
    database.exec(
      'CREATE TABLE item (id INTEGER, name TEXT); INSERT INTO item VALUES (1, NULL), (2, $$x$$)'.replaceAll(
        '$$',
        "'",
      ),
    );
    database.close();
    await client.datasources.create({ slug, connection: { kind: 'sqlite', path: `${slug}.db` } });
  }
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({
    environmentId,
    context: { datasourceSlugs: ['sales'] },
  });
  model.script(
    (exchange) =>
      exchange
        .calls(
          ['list_datasources', {}],
          ['query_datasource', { slug: 'sales', sql: 'SELECT * FROM item ORDER BY id' }],
          ['query_datasource', { slug: 'sales', sql: 'SELECT 1 AS one UNION ALL SELECT 2', maxRows: 1 }],
          ['query_datasource', { slug: 'sales', sql: 'CREATE TABLE t (a)' }],
          ['describe_datasource', { slug: 'sales' }],
          ['query_datasource', { slug: 'secret', sql: 'SELECT 1' }],
        )
        .end('tool_calls'),
    (exchange) => exchange.text('Done.').end(),
  );
  const run = await client.waitForRun((await client.agentSessions.prompt(sessionId, 'Look.')).runId);
  assert.deepEqual(calls(run), [
    ['list_datasources', 'completed', 'sales (sqlite)'],
    ['query_datasource', 'completed', 'id | name\n1 | NULL\n2 | x'],
    ['query_datasource', 'completed', 'one\n1\n[only the first 1 rows]'],
    ['query_datasource', 'failed', 'attempt to write a readonly database'],
    ['describe_datasource', 'completed', 'item(id INTEGER, name TEXT)'],
    ['query_datasource', 'failed', 'The datasource secret is not among those of this conversation: sales.'],
  ]);
});
