/** Runs the real driver against a stand-in that speaks the HTTP interface of ClickHouse. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { testProbes } from '../probe-cases.ts';
import { ask, askAndCancel, probeFixture } from '../probe-fixture.ts';

const NAMES = ['b', 'i', 'l', 'f', 'n', 'd', 't', 'a', 's', 'r', 'z'];
const TYPES = [
  'Bool',
  'Int8',
  'UInt64',
  'Float64',
  'Float64',
  'Nullable(Decimal(9, 2))',
  'LowCardinality(String)',
  'Date',
  'DateTime64(3)',
  'Array(UInt8)',
  'Nullable(String)',
];
const ROW = [
  true,
  1,
  '18446744073709551615',
  1.5,
  'nan',
  '1.10',
  'é',
  '2024-02-29',
  '2024-01-02 03:04:05.678',
  [1, 2],
  null,
];

/** With a cost of the square of its length, a type of this length would take hours. */
const LONG_TYPES = [')', 'Nullable(', 'LowCardinality', '0', '(', ' '].map(
  (unit) => `${unit.repeat(1e6 / unit.length)}x`,
);
const LONG_NAMES = LONG_TYPES.map(() => 'n'.repeat(20_000));

const LINES = '["a"]\n["UInt8"]\n[1]\n';

function answer({ path, headers, body }: StandInRequest): StandInAnswer | undefined {
  const { searchParams } = new URL(path, 'http://x');
  const failed = (status: number, code: number, name: string) => ({
    status,
    headers: { 'x-clickhouse-exception-code': String(code) },
    body: `Code: ${code}. DB::Exception: ${name === 'SYNTAX_ERROR' ? 'Syntax error near secret-password' : 'x'}. (${name}) (version 24.8.1.1)\n`,
  });
  const expected = `Basic ${Buffer.from('analyst:secret-password').toString('base64')}`;
  if (headers.authorization !== expected) return failed(403, 516, 'AUTHENTICATION_FAILED');
  if (searchParams.get('database') !== 'sales') return failed(404, 81, 'UNKNOWN_DATABASE');
  if (body.startsWith('SELECT sleep')) return undefined;
  if (body.startsWith('SELECT packed')) {
    const status = body.startsWith('SELECT packed error') ? 500 : 200;
    return { status, headers: { 'content-encoding': 'gzip' }, body: gzipSync(LINES) };
  }
  if (body.startsWith('SELECT throwIf'))
    return {
      body: `${LINES}Code: 395. DB::Exception: The value is non-zero. (THROW_IF) (version 24.8.1.1)\n`,
    };
  if (body.startsWith('SELECT cut')) return { body: `${LINES}[2` };
  if (body.startsWith('SELECT long error')) return { status: 500, body: endless() };
  if (body.startsWith('SELECT endless')) return { body: endless() };
  if (body.startsWith('SELEC ')) return failed(400, 62, 'SYNTAX_ERROR');
  if (!body.startsWith('SELECT') && searchParams.get('readonly') === '2') return failed(500, 164, 'READONLY');
  const [names, types, rows] = body.startsWith('SELECT *')
    ? [NAMES, TYPES, [ROW]]
    : body.startsWith('SELECT long types')
      ? [LONG_NAMES, LONG_TYPES, []]
      : [['1'], ['UInt8'], [[1]]];
  return { body: `${[names, types, ...rows].map((line) => JSON.stringify(line)).join('\n')}\n` };
}

/** One row that does not end while it is read. */
function endless(): Readable {
  let isFirst = true;
  return new Readable({
    read() {
      this.push(isFirst ? '["t"]\n["String"]\n["' : 'x'.repeat(65_536));
      isFirst = false;
    },
  });
}

async function clickhouse(owner: Owner, overrides: object = {}) {
  const { port, requests } = await httpStandIn(owner, answer);
  const connection = {
    kind: 'clickhouse',
    url: `https://localhost:${port}`,
    database: 'sales',
    user: 'analyst',
    password: 'secret-password',
    ca_certificate: TEST_CERTIFICATE,
    ...overrides,
  };
  return { connection, requests };
}

testProbes(clickhouse, {
  'a clickhouse connection works': [{}, true, 'The connection works.'],
  'a wrong password is rejected': [{ password: 'wrong' }, false, FAILURES.authentication],
  'a missing database is reported': [{ database: 'none' }, false, FAILURES.database_missing],
});

test('a certificate that the system does not know is rejected', async (t) => {
  const { ca_certificate: _, ...connection } = (await clickhouse(t)).connection;
  assert.deepEqual(await probeFixture(t).probe(connection), { ok: false, message: FAILURES.tls });
});

test('long names of columns are cut, and long names of types take time in proportion to their length', async (t) => {
  const session = await probeFixture(t).open((await clickhouse(t)).connection);
  const { columns } = await ask(session, 'SELECT long types');
  assert.deepEqual(
    columns.map(({ name, type }) => [name.length, type]),
    LONG_TYPES.map(() => [10_000, 'other']),
  );
});

test('values of every common type are returned unchanged', async (t) => {
  const session = await probeFixture(t).open((await clickhouse(t)).connection);
  assert.deepEqual(await ask(session, 'SELECT * FROM x'), {
    columns: [
      { name: 'b', type: 'boolean' },
      { name: 'i', type: 'integer' },
      { name: 'l', type: 'integer' },
      { name: 'f', type: 'float' },
      { name: 'n', type: 'float' },
      { name: 'd', type: 'decimal' },
      { name: 't', type: 'text' },
      { name: 'a', type: 'date' },
      { name: 's', type: 'timestamp' },
      { name: 'r', type: 'json' },
      { name: 'z', type: 'text' },
    ],
    rows: [
      [
        true,
        1,
        18446744073709551615n,
        1.5,
        Number.NaN,
        '1.10',
        'é',
        '2024-02-29',
        '2024-01-02 03:04:05.678',
        '[1,2]',
        null,
      ],
    ],
  });
});

test("the server's error message for a statement is passed on, without the password", async (t) => {
  const session = await probeFixture(t).open((await clickhouse(t)).connection);
  await assert.rejects(ask(session, 'SELEC 1', { readOnly: false }), (error: object) => {
    assert.deepEqual(Reflect.get(error, 'category'), 'query');
    assert.match(String(Reflect.get(error, 'detail')), /Syntax error near \[secret\]/);
    return true;
  });
  await assert.rejects(ask(session, 'DROP TABLE x'), { category: 'query' });
});

for (const readOnly of [true, false]) {
  test(`a cancelled query ends in the server as well, ${readOnly ? 'for agents' : 'for notebooks'}`, async (t) => {
    const { connection, requests } = await clickhouse(t);
    const session = await probeFixture(t).open(connection);
    await askAndCancel(session, 'SELECT sleep(60)', () => requests.length > 0, { readOnly });
    const id = new URL(requests[0]?.path ?? '', 'http://x').searchParams.get('query_id');
    assert.deepEqual(
      requests.slice(1).map(({ body }) => body),
      [`KILL QUERY WHERE query_id = '${id}'`],
    );
  });
}

test('the response to a writing statement is read and discarded', async (t) => {
  const { connection, requests } = await clickhouse(t);
  const session = await probeFixture(t).open(connection);
  assert.deepEqual(await ask(session, 'CHECK TABLE x', { readOnly: false }), { columns: [], rows: [] });
  assert.deepEqual(
    requests.map(({ body }) => body),
    ['CHECK TABLE x'],
  );
});

test('settings of a profile change neither the form of values nor whether a write is kept', async (t) => {
  const { connection, requests } = await clickhouse(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT 1');
  await ask(session, 'INSERT INTO t VALUES (1)', { readOnly: false });
  const form = {
    output_format_json_quote_64bit_integers: '1',
    output_format_json_quote_decimals: '1',
    output_format_json_quote_denormals: '1',
    output_format_json_quote_64bit_floats: '0',
    output_format_json_named_tuples_as_objects: '1',
    output_format_decimal_trailing_zeros: '0',
    date_time_output_format: 'simple',
  };
  const sent = requests.map(({ path }) =>
    Object.fromEntries(
      [...new URL(path, 'http://x').searchParams].filter(([name]) => /output_format|async/.test(name)),
    ),
  );
  assert.deepEqual(sent, [form, { ...form, wait_for_async_insert: '1' }]);
});

test('a query that ends by itself is not killed', async (t) => {
  const { connection, requests } = await clickhouse(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT 1');
  await assert.rejects(ask(session, 'SELEC 1', { readOnly: false }));
  assert.equal(requests.length, 2);
});

test('a compressed answer, which was not requested, is not decompressed', async (t) => {
  const { connection } = await clickhouse(t);
  const session = await probeFixture(t).open(connection);
  for (const sql of ['SELECT packed', 'SELECT packed error'])
    await assert.rejects(ask(session, sql), { category: 'failed' });
});

for (const [what, sql, expected] of [
  [
    'an error in the place of a row is passed on',
    'SELECT throwIf',
    { category: 'query', detail: /is non-zero/ },
  ],
  ['a result that is cut off in a row fails', 'SELECT cut', { category: 'failed' }],
  ['an error without an end fails', 'SELECT long error', { category: 'failed' }],
] as const) {
  test(what, async (t) => {
    const session = await probeFixture(t).open((await clickhouse(t)).connection);
    await assert.rejects(ask(session, sql), expected);
  });
}

test('a row without an end is cut off at the limit', async (t) => {
  const { connection } = await clickhouse(t);
  await assert.rejects(ask(await probeFixture(t).open(connection), 'SELECT endless'), {
    category: 'row_too_large',
    message: FAILURES.row_too_large,
  });
});
