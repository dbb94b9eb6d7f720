/** Runs against a stand-in that speaks the client protocol of Trino. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import type { StandInAnswer, StandInRequest } from '../http-stand-in.ts';
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

const COLUMNS = [
  ['b', 'boolean'],
  ['l', 'bigint'],
  ['f', 'double'],
  ['n', 'double'],
  ['d', 'decimal(9,2)'],
  ['t', 'varchar(3)'],
  ['y', 'varbinary'],
  ['a', 'date'],
  ['s', 'timestamp(3)'],
  ['w', 'timestamp(3) with time zone'],
  ['r', 'array(integer)'],
].map(([name, type]) => ({ name, type }));
const ROW = [
  true,
  7,
  1.5,
  'NaN',
  '1.10',
  'é',
  'AP8=',
  '2024-02-29',
  '2024-01-02 03:04:05.678',
  '2024-01-02 03:04:05.678 UTC',
  [1, 2],
];
const CELLS = [
  true,
  7,
  1.5,
  Number.NaN,
  '1.10',
  'é',
  new Uint8Array([0, 255]),
  '2024-02-29',
  '2024-01-02 03:04:05.678',
  '2024-01-02 03:04:05.678 UTC',
  '[1,2]',
];
const BASIC = `Basic ${Buffer.from('analyst:secret-password').toString('base64')}`;

/** Answers in three steps, as the coordinator does: queued, some rows, the last rows. */
function answer({ method, path, headers, body }: StandInRequest, port: number): StandInAnswer | undefined {
  if (headers.authorization !== BASIC) return { status: 401, body: 'Unauthorized' };
  const next = (name: string) =>
    `https://localhost:${port}/v1/statement/executing/${encodeURIComponent(name)}`;
  const failed = (errorName: string) => ({
    body: { id: 'q', error: { message: `${errorName} secret-password`, errorName } },
  });
  if (method === 'DELETE') return { status: 204, body: '' };
  if (method === 'GET') return pageOf(decodeURIComponent(path.split('/').at(-1) ?? ''), next);
  if (headers['x-trino-catalog'] !== 'hive') return failed('CATALOG_NOT_FOUND');
  if (body === 'SELEC') return failed('SYNTAX_ERROR');
  if (body.includes('information_schema'))
    return { body: { id: 'q', nextUri: next(body.includes("'sales'") ? 'SELECT 1' : 'SELECT nothing') } };
  if (body === 'SELECT away')
    return { body: { id: 'q', nextUri: 'https://169.254.169.254/v1/statement/executing/SELECT%201' } };
  return { body: { id: 'q', nextUri: next(body.startsWith('EXECUTE') ? 'SELECT *' : body) } };
}

/** Returns the page of a statement; nothing for a page that never comes. */
function pageOf(sql: string, next: (name: string) => string): StandInAnswer | undefined {
  if (sql === 'SELECT large') return tooLargePage();
  if (sql === 'SELECT *') return { body: { id: 'q', columns: COLUMNS, data: [ROW], nextUri: next('last') } };
  if (sql === 'last') return { body: { id: 'q', columns: COLUMNS, data: [ROW] } };
  if (sql === 'SELECT long names')
    return { body: { id: 'q', columns: LONG_TYPES.map((type) => ({ name: LONG_NAME, type })), data: [] } };
  const result = resultOf(sql);
  if (result === undefined) return undefined;
  const { column, type, rows, isPartial } = result;
  const data = rows.length > 0 ? { data: rows } : {};
  return {
    body: {
      id: 'q',
      columns: [{ name: column, type }],
      ...data,
      ...(isPartial && { nextUri: next('SELECT forever') }),
    },
  };
}

const connectionTo = (port: number) => ({
  kind: 'trino',
  url: `https://localhost:${port}`,
  catalog: 'hive',
  schema: 'sales',
  user: 'analyst',
  password: 'secret-password',
  ca_certificate: TEST_CERTIFICATE,
});

function trino(owner: Owner, overrides: Overrides = {}) {
  return startHttp(
    owner,
    {
      statementIn: ({ method, body }) => (method === 'POST' ? body : undefined),
      parametersIn: ({ headers, body }) => [headers['x-trino-prepared-statement'], body],
      isPoll: ({ path }) => path.endsWith('/SELECT%20forever'),
      isCancel: ({ method }) => method === 'DELETE',
      answer,
    },
    (port) => ({ ...connectionTo(port), ...overrides }),
  );
}

const ONLY_READING = 'Only statements that read are allowed here.';

conformance({
  kind: 'trino',
  start: trino,
  cancellation: /^DELETE \/v1\/statement\/executing\/SELECT%20forever /,
  rules: {
    ...HTTP_RULES,
    works: { 'with a password': {} },
    wrongCredentials: { 'a wrong password': { password: 'wrong' } },
    missing: { catalog: { catalog: 'none' }, schema: { schema: "no'ne" } },
    withoutTls: cannot('a password is sent over https only'),
    requiredTls: { https: async (t) => connectionTo(await plainPort(t)) },
    values: {
      sql: 'SELECT *',
      columns:
        'b:boolean l:integer f:float n:float d:decimal t:text y:bytes a:date s:timestamp w:timestamptz r:json',
      rows: [CELLS, CELLS],
    },
    parameters: {
      sql: 'SELECT * FROM x WHERE a = ?',
      received: [
        'statement=SELECT%20*%20FROM%20x%20WHERE%20a%20%3D%20%3F',
        "EXECUTE statement USING 'it''s; DROP TABLE x -- \\', 5, 9007199254740993, DOUBLE '1.5', DOUBLE '2', NULL, true, X'ff00'",
      ],
    },
    infinity: {
      sql: 'SELECT ?, ?',
      received: ['statement=SELECT%20%3F%2C%20%3F', 'EXECUTE statement USING infinity(), -infinity()'],
    },
    writes: {
      'DROP TABLE x': ONLY_READING,
      'EXPLAIN /* */ ANALYZE DROP TABLE x': ONLY_READING,
      'WITH a AS (SELECT 1) INSERT INTO b SELECT 1': ONLY_READING,
      'CALL x()': ONLY_READING,
    },
    message: { sql: 'SELEC', detail: 'SYNTAX_ERROR [secret]' },
  },
});

test('a nextUri with another host is requested from the host of the connection', async (t) => {
  const { connection, fixture, requests } = await trino(t);
  const session = await fixture.open(connection);
  assert.deepEqual((await ask(session, 'SELECT away')).rows, [[1]]);
  assert.deepEqual(
    requests.map(({ method, path }) => [method, path]),
    [
      ['POST', '/v1/statement'],
      ['GET', '/v1/statement/executing/SELECT%201'],
    ],
  );
});
