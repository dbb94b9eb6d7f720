/** Runs the real driver against a stand-in that speaks the HTTP interface of ClickHouse. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import type { StandInAnswer, StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { ask, askAndCancel } from '../probe-fixture.ts';
import { cannot, conformance, type Overrides } from './conformance.ts';
import { HTTP_RULES, LONG_NAME, LONG_TYPES, plainPort, resultOf, startHttp } from './http-vendor.ts';

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
  if (body.startsWith('SELECT forever')) return undefined;
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
  if (/^SELEC\b/.test(body)) return failed(400, 62, 'SYNTAX_ERROR');
  if (!body.startsWith('SELECT') && searchParams.get('readonly') === '2') return failed(500, 164, 'READONLY');
  return { body: linesOf(body.replace(/\nFORMAT \w+$/, '')) };
}

/** Returns the lines of a result: names, types and rows. A partial result has no end. */
function linesOf(sql: string): string | Readable {
  const text = (...lines: readonly unknown[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  if (sql === 'SELECT *') return text(NAMES, TYPES, ROW);
  if (sql === 'SELECT long names')
    return text(
      LONG_TYPES.map(() => LONG_NAME),
      LONG_TYPES,
    );
  const result = resultOf(sql);
  if (result === undefined) return text(['1'], ['UInt8'], [1]);
  const { column, rows, isPartial } = result;
  const lines = text([column], ['Int64'], ...rows.map(([value]) => [String(value)]));
  if (!isPartial) return lines;
  const unending = new Readable({ read() {} });
  unending.push(lines);
  return unending;
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

function clickhouse(owner: Owner, overrides: Overrides = {}) {
  return startHttp(
    owner,
    {
      statementIn: ({ body }) => (body.startsWith('KILL') ? undefined : body),
      parametersIn: ({ path, body }) => [
        body.split('\n')[0],
        ...[...new URL(path, 'http://x').searchParams].filter(([name]) => name.startsWith('param_')),
      ],
      isCancel: ({ body }) => body.startsWith('KILL'),
      answer,
    },
    (port) => ({ ...connectionTo(port), ...overrides }),
  );
}

const connectionTo = (port: number) => ({
  kind: 'clickhouse',
  url: `https://localhost:${port}`,
  database: 'sales',
  user: 'analyst',
  password: 'secret-password',
  ca_certificate: TEST_CERTIFICATE,
});

conformance({
  kind: 'clickhouse',
  start: clickhouse,
  cancellation: /KILL QUERY WHERE query_id = '[0-9a-f-]{36}'$/,
  rules: {
    ...HTTP_RULES,
    manyRows: { ...HTTP_RULES.manyRows, most: 2499 },
    works: { 'with a password': {} },
    wrongCredentials: { 'a wrong password': { password: 'wrong' } },
    missing: { database: { database: 'none' } },
    requiredTls: { https: async (t) => connectionTo(await plainPort(t)) },
    values: {
      sql: 'SELECT *',
      columns:
        'b:boolean i:integer l:integer f:float n:float d:decimal t:text a:date s:timestamp r:json z:text',
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
    },
    noResult: 'CHECK TABLE x',
    largeRows: cannot('the driver passes rows on as they arrive'),
    tooLarge: { beyond: 'SELECT endless', category: 'row_too_large' },
    parameters: {
      sql: 'SELECT ?, ?, ?, ?, ?, ?, ?, ?',
      received: [
        'SELECT {p1:String}, {p2:Int64}, {p3:Int64}, {p4:Float64}, {p5:Float64}, {p6:Nullable(String)}, {p7:Bool}, unhex({p8:String})',
        ['param_p1', "it\\'s; DROP TABLE x -- \\\\"],
        ['param_p2', '5'],
        ['param_p3', '9007199254740993'],
        ['param_p4', '1.5'],
        ['param_p5', '2'],
        ['param_p6', '\\N'],
        ['param_p7', '1'],
        ['param_p8', 'ff00'],
      ],
    },
    infinity: {
      sql: 'SELECT ?, ?',
      received: ['SELECT {p1:Float64}, {p2:Float64}', ['param_p1', '+inf'], ['param_p2', '-inf']],
    },
    writes: { 'DROP TABLE x': undefined },
    message: { sql: 'SELEC', detail: /Syntax error near \[secret\]/ },
  },
});

async function opened(owner: Owner) {
  const { connection, fixture, requests } = await clickhouse(owner);
  return { requests, session: await fixture.open(connection) };
}

test('a cancelled query is ended on the server by its id', async (t) => {
  const { session, requests } = await opened(t);
  await askAndCancel(session, 'SELECT forever', () => requests.length > 0);
  const id = new URL(requests[0]?.path ?? '', 'http://x').searchParams.get('query_id');
  assert.deepEqual(
    requests.slice(1).map(({ body }) => body),
    [`KILL QUERY WHERE query_id = '${id}'`],
  );
});

test('the response to a writing statement is read and discarded', async (t) => {
  const { session, requests } = await opened(t);
  assert.deepEqual(await ask(session, 'CHECK TABLE x', { readOnly: false }), { columns: [], rows: [] });
  assert.deepEqual(
    requests.map(({ body }) => body),
    ['CHECK TABLE x'],
  );
});

test('settings of a profile change neither the form of values nor the effect of a write', async (t) => {
  const { session, requests } = await opened(t);
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

test('a compressed answer, which was not requested, is not decompressed', async (t) => {
  const { session } = await opened(t);
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
    const { session } = await opened(t);
    await assert.rejects(ask(session, sql), expected);
  });
}
