/** The panel for data sources of a notebook's page: dataframes and connections of the notebook's code. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

const CODES = {
  connect:
    'import duckdb\nconnection = duckdb.connect(":memory:")\n_ = connection.execute("create table sales (amount int, region text)")',
  frame: 'import pandas\nframe = pandas.DataFrame({"amount": [1, 2, 3]})',
};

const PLACE = { engine: 'connection', database: 'memory', schemaPath: [] };
const QUESTIONS = {
  'datasources/preview_sql_schema_list': { requestId: 'r1', ...PLACE },
  'datasources/preview_sql_table_list': { requestId: 'r2', ...PLACE, schema: 'main' },
  'datasources/preview_sql_table': { requestId: 'r3', ...PLACE, schema: 'main', tableName: 'sales' },
  'datasources/preview_datasource_connection': { engine: 'connection' },
  'sql/validate': { requestId: 'r4', query: 'select 1 frm x', onlyParse: true, dialect: 'duckdb' },
} as const;

test('a page that may edit sees schemas, tables and columns of the connections of a notebook, and errors of a statement', async () => {
  const notebook = await openNotebook(server, CODES);
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  assert.equal((await notebook.run({ type: 'all' })).status, 'completed');
  for (const [path, body] of Object.entries(QUESTIONS)) await page.do(path, body);
  const answer = (id: string) => page.next(({ request_id }) => request_id === id);
  assert.match(JSON.stringify((await answer('r1')).schemas), /"main"/);
  assert.match(JSON.stringify((await answer('r2')).tables), /"sales"/);
  assert.match(JSON.stringify((await answer('r3')).table), /"amount".*"region"/);
  assert.match(JSON.stringify((await answer('r4')).parse_result), /syntax error/);
  await page.next(({ op }) => op === 'data-source-connections');
  const column = { sourceType: 'local', source: 'pandas', tableName: 'frame', columnName: 'amount' };
  await page.do('datasources/preview_column', column);
  const preview = await page.next(({ op }) => op === 'data-column-preview');
  assert.deepEqual([preview.table_name, preview.column_name, preview.error], ['frame', 'amount', null]);
  for (const path of Object.keys(QUESTIONS)) {
    assert.equal((await page.send(path, {})).status, 400, path);
    assert.equal(
      (await page.send(path, { ...PLACE, requestId: 1 })).status,
      path.endsWith('connection') ? 200 : 400,
    );
  }
  for (const access of ['view', 'interact'] as const) {
    await using other = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    for (const [path, body] of Object.entries(QUESTIONS))
      assert.equal((await other.send(path, body)).status, 403, path);
  }
  await notebook.close();
});
