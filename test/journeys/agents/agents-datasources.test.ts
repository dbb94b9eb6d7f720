import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { httpStandIn } from '#test/datasource/http-stand-in.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

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

test('an agent lists, describes and queries the datasources of its conversation, and cannot write to them', async () => {
  mkdirSync(server.filesDir, { recursive: true });
  for (const slug of ['sales', 'secret']) {
    writeSqlite(
      join(server.filesDir, `${slug}.db`),
      'CREATE TABLE item (id INTEGER, name TEXT)',
      "INSERT INTO item VALUES (1, NULL), (2, 'x')",
    );
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
    ['query_datasource', 'failed', 'This conversation has no datasource secret. Its datasources: sales.'],
  ]);
});

test('a bound agent may use the datasources of its notebook and of its conversation, if its caller may read them', async () => {
  const nora = await addMember(server, 'nora', 'editor');
  const connection = { kind: 'sqlite', path: 'sales.db' };
  for (const slug of ['of-notebook', 'of-agent', 'of-neither', 'private']) {
    await client.datasources.create({ slug, connection });
    if (slug !== 'private') await client.datasources.grant(slug, 'user:nora');
  }
  const notebook = await openNotebook(
    server,
    {},
    { datasourceSlugs: ['of-notebook', 'private', 'of-agent'] },
  );
  const { context } = await nora.client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
    context: { datasourceSlugs: ['of-agent'] },
  });
  assert.deepEqual(context, { datasourceSlugs: ['of-agent'] });
  const ask = (slug: string) => ['query_datasource', { slug, sql: 'SELECT 1 AS one' }] as [string, object];
  model.script(
    (exchange) =>
      exchange
        .calls(
          ['list_datasources', {}],
          ask('of-notebook'),
          ask('of-agent'),
          ask('private'),
          ask('of-neither'),
        )
        .end('tool_calls'),
    (exchange) => exchange.text('Done.').end(),
  );
  const { runId } = await nora.client.agentSessions.prompt(notebook.id, 'Look.');
  const said = calls(await nora.client.waitForRun(runId));
  assert.deepEqual(said.slice(0, 3), [
    ['list_datasources', 'completed', 'of-agent (sqlite)\nof-notebook (sqlite)'],
    ['query_datasource', 'completed', 'one\n1'],
    ['query_datasource', 'completed', 'one\n1'],
  ]);
  assert.match(String(said[3]), /^query_datasource,failed,not_found/);
  assert.match(String(said[4]), /^query_datasource,failed,This conversation has no datasource of-neither\./);
});

/** The result of the tool when this caller has the agent of a conversation describe the datasource `remote`. */
async function describedIn(
  sessionId: string,
  caller: Client,
  input: object = {},
): Promise<readonly unknown[]> {
  model.script(
    (exchange) => exchange.calls(['describe_datasource', { slug: 'remote', ...input }]).end('tool_calls'),
    (exchange) => exchange.text('Done.').end(),
  );
  const run = await caller.waitForRun((await caller.agentSessions.prompt(sessionId, 'Look.')).runId);
  return calls(run)[0]?.slice(1) ?? [];
}

test('the tables of a remote datasource are cached for some minutes, but the right to read them is checked each time', async (t) => {
  let table = 'orders';
  const columns = ['a', 'b', 'c', 'd'].map((name) => ({ name, type: 'varchar' }));
  const database = await httpStandIn(
    t,
    () => ({ body: { id: 'q', columns, data: [['sales', table, 'id', 'integer']] } }),
    false,
  );
  const asked = () =>
    database.requests.filter(({ body }) => body.includes('information_schema.columns')).length;
  const connection = {
    kind: 'trino',
    url: `http://localhost:${database.port}`,
    catalog: 'c',
    schema: 's',
    user: 'u',
  };
  await client.datasources.create({ slug: 'remote', connection });
  await client.members.create({ userId: 'vera', role: 'editor' });
  const scopes = ['workspaceRuntime:connect', 'datasource:read'] as const;
  const { token } = await client.accessTokens.create({ name: 'vera', userId: 'vera', scopes });
  const vera = server.clientOf({ token, workspaceId: OWNER.workspaceId });
  await client.datasources.grant('remote', 'user:vera');
  // One conversation for both datasources, because each worker has a cache of its own and a
  // conversation is in one worker.
  const { environmentId } = await client.executionEnvironments.create();
  const context = { datasourceSlugs: ['remote'] };
  const { sessionId } = await client.agentSessions.open({ environmentId, context });
  await client.agentSessions.grant(sessionId, 'vera');
  const described = (caller: Client, input?: object) => describedIn(sessionId, caller, input);

  assert.deepEqual(await described(client), ['completed', 'sales.orders(id integer)']);
  table = 'customers';
  assert.deepEqual(await described(client), ['completed', 'sales.orders(id integer)']);
  assert.deepEqual(await described(vera), ['completed', 'sales.orders(id integer)']);
  assert.equal(asked(), 1);
  assert.deepEqual(await described(vera, { refresh: true }), ['completed', 'sales.customers(id integer)']);
  assert.equal(asked(), 2);
  await client.datasources.revoke('remote', 'user:vera');
  assert.match(String(await described(vera)), /^failed,not_found/);
  table = 'invoices';
  await client.datasources.replace('remote', { connection });
  assert.deepEqual(await described(client), ['completed', 'sales.invoices(id integer)']);
  await client.datasources.delete('remote');
  assert.match(String(await described(client)), /^failed,not_found/);
  table = 'payments';
  await client.datasources.create({ slug: 'remote', connection });
  assert.deepEqual(await described(client), ['completed', 'sales.payments(id integer)']);
});
