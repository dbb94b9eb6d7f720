/** Runs against a stand-in that speaks the Statement Execution API of Databricks and serves results on another port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { testProbes } from '../probe-cases.ts';
import { ask, askAndCancel, probeFixture } from '../probe-fixture.ts';

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
  const linked = (chunk: number) => ({
    external_links: [{ external_link: `${link}/${chunk}`, ...(chunk === 0 && { next_chunk_index: 1 }) }],
  });
  const done = { state: 'SUCCEEDED' };
  if (method === 'GET') {
    if (path.endsWith('/result/chunks/1')) return { body: linked(1) };
    if (path.endsWith('/rows'))
      return {
        body: {
          statement_id: 'rows',
          status: done,
          manifest: { schema: { columns: COLUMNS } },
          result: linked(0),
        },
      };
    return { body: { statement_id: 'forever', status: { state: 'RUNNING' } } };
  }
  if (path.endsWith('/cancel')) return { body: {} };
  const { statement }: Record<string, string> = JSON.parse(body);
  const failed = (message: string) => ({
    body: { statement_id: 'f', status: { state: 'FAILED', error: { error_code: 'BAD_REQUEST', message } } },
  });
  if (statement === 'DESCRIBE SCHEMA `main`.`sales`')
    return {
      body: { statement_id: 'd', status: done, manifest: { schema: { columns: COLUMNS } }, result: {} },
    };
  if (statement?.startsWith('DESCRIBE SCHEMA'))
    return failed('[SCHEMA_NOT_FOUND] The schema cannot be found.');
  if (statement === 'SELEC') return failed('[PARSE_SYNTAX_ERROR] secret-token');
  return {
    body: { statement_id: statement === 'SELECT forever' ? 'forever' : 'rows', status: { state: 'PENDING' } },
  };
}

async function databricks(owner: Owner, overrides: object = {}, storageHost?: string) {
  const storage = await httpStandIn(owner, () => ({ body: [ROW] }));
  const link = `https://${storageHost ?? `localhost:${storage.port}`}/chunk`;
  const { port, requests } = await httpStandIn(owner, (request) => answer(request, link));
  const connection = {
    kind: 'databricks',
    host: 'localhost',
    port,
    http_path: '/sql/1.0/warehouses/abc123',
    token: 'secret-token',
    catalog: 'main',
    schema: 'sales',
    ca_certificate: TEST_CERTIFICATE,
    ...overrides,
  };
  return { connection, requests, storage };
}

testProbes(databricks, {
  'a databricks connection works': [{}, true, 'The connection works.'],
  'a wrong token is rejected': [{ token: 'wrong' }, false, FAILURES.authentication],
  'a missing schema is reported': [{ schema: 'no`ne' }, false, FAILURES.database_missing],
});

test('values of every common type are returned unchanged, chunk by chunk, and chunks are fetched without our token', async (t) => {
  const { connection, storage, requests } = await databricks(t);
  const session = await probeFixture(t).open(connection);
  const types = 'boolean integer float decimal text bytes date timestamptz json text'.split(' ');
  const row = [true, 9007199254740993n, 1.5, '1.10', 'é', new Uint8Array([0, 255]), ...ROW.slice(6)];
  assert.deepEqual(await ask(session, 'SELECT * FROM x'), {
    columns: COLUMNS.map(({ name }, at) => ({ name, type: types[at] })),
    rows: [row, row],
  });
  assert.deepEqual(
    storage.requests.map(({ path, headers }) => [path, headers.authorization]),
    [
      ['/chunk/0', undefined],
      ['/chunk/1', undefined],
    ],
  );
  assert.equal(JSON.parse(requests[0]?.body ?? '').warehouse_id, 'abc123');
});

test('a result at a forbidden address is not fetched', async (t) => {
  const { connection } = await databricks(t, {}, '169.254.169.254');
  const session = await probeFixture(t).open(connection);
  await assert.rejects(ask(session, 'SELECT * FROM x'), { category: 'not_allowed' });
});

test('parameters are named after their position, such as p1', async (t) => {
  const { connection, requests } = await databricks(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT :p1', { parameters: ["it's", 5n, 1.5, null, true, 2] });
  assert.deepEqual(JSON.parse(requests[0]?.body ?? '').parameters, [
    { name: 'p1', type: 'STRING', value: "it's" },
    { name: 'p2', type: 'LONG', value: '5' },
    { name: 'p3', type: 'DOUBLE', value: '1.5' },
    { name: 'p4', type: 'VOID' },
    { name: 'p5', type: 'BOOLEAN', value: 'true' },
    { name: 'p6', type: 'DOUBLE', value: '2' },
  ]);
});

test("the server's error message for a statement is passed on, without the token", async (t) => {
  const session = await probeFixture(t).open((await databricks(t)).connection);
  const detail = '[PARSE_SYNTAX_ERROR] [secret]';
  await assert.rejects(ask(session, 'SELEC', { readOnly: false }), { category: 'query', detail });
  await assert.rejects(ask(session, 'WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a'), {
    category: 'query',
  });
});

test('a cancelled query is cancelled in the server', async (t) => {
  const { connection, requests } = await databricks(t);
  const session = await probeFixture(t).open(connection);
  await askAndCancel(session, 'SELECT forever', () => requests.length >= 2);
  assert.equal(requests.at(-1)?.path, '/api/2.0/sql/statements/forever/cancel');
});
