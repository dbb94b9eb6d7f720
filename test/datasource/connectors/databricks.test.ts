/** Runs against a stand-in that speaks the Statement Execution API of Databricks and serves results on another port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { ask } from '../probe-fixture.ts';
import { cannot, conformance, type Overrides } from './conformance.ts';
import {
  HTTP_RULES,
  LONG_NAME,
  LONG_TYPES,
  plainPort,
  resultOf,
  startHttp,
  tooLargePage,
} from './http-vendor.ts';

const SUCCEEDED = { state: 'SUCCEEDED' };
const TYPES = [
  'BOOLEAN',
  'LONG',
  'DOUBLE',
  'DECIMAL',
  'STRING',
  'BINARY',
  'DATE',
  'TIMESTAMP',
  'ARRAY',
  'STRING',
];
const COLUMNS = TYPES.map((type_name, at) => ({ name: `c${at}`, type_name }));
const ROW = [
  'true',
  '9007199254740993',
  '1.5',
  '1.10',
  'é',
  'AP8=',
  '2024-02-29',
  '2024-01-02T03:04:05.678Z',
  '[1,2]',
  null,
];

function answer({ method, path, headers, body }: StandInRequest, link: string): StandInAnswer | undefined {
  if (headers.authorization !== 'Bearer secret-token')
    return { status: 403, body: { error_code: '403', message: 'Invalid token' } };
  if (method === 'GET') return stateOf(decodeURIComponent(path), link);
  if (path.endsWith('/cancel')) return { body: {} };
  const { statement }: Record<string, string> = JSON.parse(body);
  const failed = (message: string) => ({
    body: { statement_id: 'f', status: { state: 'FAILED', error: { error_code: 'BAD_REQUEST', message } } },
  });
  if (statement === 'DESCRIBE SCHEMA `main`.`sales`')
    return {
      body: { statement_id: 'd', status: SUCCEEDED, manifest: { schema: { columns: COLUMNS } }, result: {} },
    };
  if (statement?.startsWith('DESCRIBE SCHEMA'))
    return failed('[SCHEMA_NOT_FOUND] The schema cannot be found.');
  if (statement === 'SELEC') return failed('[PARSE_SYNTAX_ERROR] secret-token');
  return { body: { statement_id: statement, status: { state: 'PENDING' } } };
}

/** Returns the state of a statement, with a link to its rows, or the link to a later chunk; nothing for a chunk that never comes. */
function stateOf(path: string, link: string): StandInAnswer | undefined {
  const [, sql = '', chunk] = /\/statements\/([^/]+)(?:\/result\/chunks\/(\d+))?$/.exec(path) ?? [];
  const isPartial = resultOf(sql)?.isPartial === true;
  const hasMore = chunk === undefined && (isPartial || sql === 'SELECT *');
  const result = {
    external_links: [
      {
        external_link: `${link}/${encodeURIComponent(sql)}/${chunk ?? 0}`,
        ...(hasMore && { next_chunk_index: 1 }),
      },
    ],
  };
  if (chunk !== undefined) return isPartial ? undefined : { body: result };
  if (sql === 'SELECT forever') return { body: { statement_id: sql, status: { state: 'RUNNING' } } };
  const manifest = { schema: { columns: columnsFor(sql) } };
  return { body: { statement_id: sql, status: SUCCEEDED, manifest, result } };
}

function columnsFor(sql: string): readonly object[] {
  if (sql === 'SELECT long names') return LONG_TYPES.map((type_name) => ({ name: LONG_NAME, type_name }));
  const known = resultOf(sql);
  return known === undefined ? COLUMNS : [{ name: known.column, type_name: 'LONG' }];
}

/** Returns the rows behind a link. */
function chunkOf(path: string): StandInAnswer {
  const sql = decodeURIComponent(path.split('/')[2] ?? '');
  if (sql === 'SELECT large') return tooLargePage();
  if (sql === 'SELECT long names') return { body: [] };
  return { body: resultOf(sql)?.rows.map(([value]) => [String(value)]) ?? [ROW] };
}

const connectionTo = (port: number) => ({
  kind: 'databricks',
  host: 'localhost',
  port,
  http_path: '/sql/1.0/warehouses/abc123',
  token: 'secret-token',
  catalog: 'main',
  schema: 'sales',
  ca_certificate: TEST_CERTIFICATE,
});

async function databricks(owner: Owner, { storageHost, ...overrides }: Overrides = {}) {
  const storage = await httpStandIn(owner, ({ path }) => chunkOf(path));
  const link = `https://${storageHost ?? `localhost:${storage.port}`}/chunk`;
  const running = await startHttp(
    owner,
    {
      statementIn: ({ path, body }) =>
        path.endsWith('/statements') ? JSON.parse(body).statement : undefined,
      parametersIn: ({ body }) => JSON.parse(body).parameters,
      isPoll: ({ path }) => path.endsWith('/SELECT%20forever'),
      isCancel: ({ path }) => path.endsWith('/cancel'),
      answer: (request) => answer(request, link),
    },
    (port) => ({ ...connectionTo(port), ...overrides }),
  );
  return { ...running, storage };
}

const CELLS = [
  true,
  9007199254740993n,
  1.5,
  '1.10',
  'é',
  new Uint8Array([0, 255]),
  '2024-02-29',
  '2024-01-02T03:04:05.678Z',
  '[1,2]',
  null,
];
const ONLY_READING = 'Only statements that read are allowed here.';

conformance({
  kind: 'databricks',
  start: databricks,
  cancellation: /^POST \/api\/2\.0\/sql\/statements\/SELECT%20forever\/cancel /,
  rules: {
    ...HTTP_RULES,
    works: { 'with a token': {} },
    wrongCredentials: { 'a wrong token': { token: 'wrong' } },
    missing: { schema: { schema: 'no`ne' } },
    withoutTls: cannot('Databricks is reached by https only'),
    requiredTls: { https: async (t) => connectionTo(await plainPort(t)) },
    values: {
      sql: 'SELECT *',
      columns:
        'c0:boolean c1:integer c2:float c3:decimal c4:text c5:bytes c6:date c7:timestamptz c8:json c9:text',
      rows: [CELLS, CELLS],
    },
    parameters: {
      sql: 'SELECT :p1',
      received: [
        { name: 'p1', type: 'STRING', value: "it's; DROP TABLE x -- \\" },
        { name: 'p2', type: 'LONG', value: '5' },
        { name: 'p3', type: 'LONG', value: '9007199254740993' },
        { name: 'p4', type: 'DOUBLE', value: '1.5' },
        { name: 'p5', type: 'DOUBLE', value: '2' },
        { name: 'p6', type: 'VOID' },
        { name: 'p7', type: 'BOOLEAN', value: 'true' },
        { name: 'p8', type: 'BINARY', value: '/wA=' },
      ],
    },
    infinity: {
      sql: 'SELECT :p1, :p2',
      received: [
        { name: 'p1', type: 'DOUBLE', value: 'Infinity' },
        { name: 'p2', type: 'DOUBLE', value: '-Infinity' },
      ],
    },
    writes: {
      'DROP TABLE x': ONLY_READING,
      'WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a': ONLY_READING,
    },
    message: { sql: 'SELEC', detail: '[PARSE_SYNTAX_ERROR] [secret]' },
  },
});

test('chunks are fetched without the token of the connection, and the warehouse is named by its id', async (t) => {
  const { connection, fixture, storage, requests } = await databricks(t);
  await ask(await fixture.open(connection), 'SELECT *');
  assert.deepEqual(
    storage.requests.map(({ path, headers }) => [path, headers.authorization]),
    [
      ['/chunk/SELECT%20*/0', undefined],
      ['/chunk/SELECT%20*/1', undefined],
    ],
  );
  assert.equal(JSON.parse(requests[0]?.body ?? '').warehouse_id, 'abc123');
});

test('a result at a forbidden address is not fetched', async (t) => {
  const { connection, fixture } = await databricks(t, { storageHost: '169.254.169.254' });
  const session = await fixture.open(connection);
  await assert.rejects(ask(session, 'SELECT * FROM x'), { category: 'not_allowed' });
});
