/** Runs against a stand-in that speaks the client protocol of Trino. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { testProbes } from '../probe-cases.ts';
import { ask, askAndCancel, probeFixture } from '../probe-fixture.ts';

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
/** With a cost of the square of its length, a type of this length would take hours. */
const LONG_COLUMNS = ['(', 'a(', ' ', ')', '\n('].map((unit) => ({
  name: 'n',
  type: `${unit.repeat(1e6)}\n`,
}));
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
const BASIC = `Basic ${Buffer.from('analyst:secret-password').toString('base64')}`;

/** Answers in three steps, as the coordinator does: queued, some rows, the last rows. */
function answer({ method, path, headers, body }: StandInRequest, port: number): StandInAnswer | undefined {
  if (headers.authorization !== BASIC) return { status: 401, body: 'Unauthorized' };
  const next = (name: string) => `https://localhost:${port}/v1/statement/executing/${name}`;
  const failed = (errorName: string) => ({
    body: { id: 'q', error: { message: `${errorName} secret-password`, errorName } },
  });
  if (method === 'DELETE') return { status: 204, body: '' };
  if (method === 'GET') {
    if (path.endsWith('/1')) return { body: { id: 'q', columns: COLUMNS, data: [ROW], nextUri: next('2') } };
    if (path.endsWith('/long')) return { body: { id: 'q', columns: LONG_COLUMNS, data: [] } };
    if (path.endsWith('/2')) return { body: { id: 'q', columns: COLUMNS, data: [ROW] } };
    if (path.endsWith('/one'))
      return { body: { id: 'q', columns: [{ name: '_col0', type: 'integer' }], data: [[1]] } };
    if (path.endsWith('/none')) return { body: { id: 'q', columns: [{ name: '_col0', type: 'integer' }] } };
    return undefined;
  }
  if (headers['x-trino-catalog'] !== 'hive') return failed('CATALOG_NOT_FOUND');
  if (body.startsWith('SELEC ')) return failed('SYNTAX_ERROR');
  if (body.includes('information_schema')) {
    return { body: { id: 'q', nextUri: next(body.includes("'sales'") ? 'one' : 'none') } };
  }
  if (body === 'SELECT long types') return { body: { id: 'q', nextUri: next('long') } };
  if (body === 'SELECT away')
    return { body: { id: 'q', nextUri: 'https://169.254.169.254/v1/statement/executing/one' } };
  return {
    body: {
      id: 'q',
      nextUri: next(body.startsWith('SELECT *') || body.startsWith('EXECUTE') ? '1' : 'forever'),
    },
  };
}

async function trino(owner: Owner, overrides: object = {}) {
  const { port, requests } = await httpStandIn(owner, answer);
  const connection = {
    kind: 'trino',
    url: `https://localhost:${port}`,
    catalog: 'hive',
    schema: 'sales',
    user: 'analyst',
    password: 'secret-password',
    ca_certificate: TEST_CERTIFICATE,
    ...overrides,
  };
  return { connection, requests };
}

testProbes(trino, {
  'a trino connection works': [{}, true, 'The connection works.'],
  'a wrong password is rejected': [{ password: 'wrong' }, false, FAILURES.authentication],
  'a missing catalog is reported': [{ catalog: 'none' }, false, FAILURES.database_missing],
  'a missing schema is reported': [{ schema: "no'ne" }, false, FAILURES.database_missing],
});

test('values of every common type are returned unchanged, page by page', async (t) => {
  const session = await probeFixture(t).open((await trino(t)).connection);
  const row = [true, 7, 1.5, Number.NaN, '1.10', 'é', new Uint8Array([0, 255]), ...ROW.slice(7, 10), '[1,2]'];
  const types = 'boolean integer float float decimal text bytes date timestamp timestamptz json'.split(' ');
  assert.deepEqual(await ask(session, 'SELECT * FROM x'), {
    columns: COLUMNS.map(({ name }, at) => ({ name, type: types[at] })),
    rows: [row, row],
  });
});

test('parameters are sent with a prepared statement', async (t) => {
  const { connection, requests } = await trino(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT * FROM x WHERE a = ?', {
    parameters: ["it's", 5n, 1.5, 2, null, true, new Uint8Array([255])],
  });
  assert.deepEqual(
    [requests[0]?.headers['x-trino-prepared-statement'], requests[0]?.body],
    [
      'statement=SELECT%20*%20FROM%20x%20WHERE%20a%20%3D%20%3F',
      "EXECUTE statement USING 'it''s', 5, DOUBLE '1.5', DOUBLE '2', NULL, true, X'ff'",
    ],
  );
});

test('a nextUri with another host is requested from the host of the connection', async (t) => {
  const { connection, requests } = await trino(t);
  const session = await probeFixture(t).open(connection);
  assert.deepEqual((await ask(session, 'SELECT away')).rows, [[1]]);
  assert.deepEqual(
    requests.map(({ method, path }) => [method, path]),
    [
      ['POST', '/v1/statement'],
      ['GET', '/v1/statement/executing/one'],
    ],
  );
});

test("the server's error message for a statement is passed on, without the password", async (t) => {
  const session = await probeFixture(t).open((await trino(t)).connection);
  await assert.rejects(ask(session, 'SELEC 1', { readOnly: false }), {
    category: 'query',
    detail: 'SYNTAX_ERROR [secret]',
  });
});

for (const sql of [
  'DROP TABLE x',
  'EXPLAIN /* */ ANALYZE DROP TABLE x',
  'WITH a AS (SELECT 1) INSERT INTO b SELECT 1',
  'CALL x()',
]) {
  test(`in read-only mode ${sql} is not sent`, async (t) => {
    const { connection, requests } = await trino(t);
    const session = await probeFixture(t).open(connection);
    await assert.rejects(ask(session, sql), {
      category: 'query',
      detail: 'Only statements that read are allowed here.',
    });
    assert.deepEqual(requests, []);
  });
}

test('a cancelled query is cancelled in the server', async (t) => {
  const { connection, requests } = await trino(t);
  const session = await probeFixture(t).open(connection);
  await askAndCancel(session, 'SELECT forever', () => requests.length >= 2);
  assert.deepEqual(requests.at(-1)?.method, 'DELETE');
});

test('long names of types take time in proportion to their length', async (t) => {
  const session = await probeFixture(t).open((await trino(t)).connection);
  const { columns } = await ask(session, 'SELECT long types');
  assert.deepEqual(
    columns.map(({ type }) => type),
    LONG_COLUMNS.map(() => 'other'),
  );
});
