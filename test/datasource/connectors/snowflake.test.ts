/** Runs against a stand-in that speaks the SQL API of Snowflake. */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { cellsOf } from '#src/datasource/connectors/snowflake/values.ts';
import { FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { testProbes } from '../probe-cases.ts';
import { ask, askAndCancel, probeFixture } from '../probe-fixture.ts';

const KEYS = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});

const ROW_TYPE = [
  { name: 'I', type: 'fixed', scale: 0 },
  { name: 'D', type: 'fixed', scale: 2 },
  { name: 'F', type: 'real' },
  { name: 'B', type: 'boolean' },
  { name: 'T', type: 'text' },
  { name: 'Y', type: 'binary' },
  { name: 'A', type: 'date' },
  { name: 'M', type: 'time', scale: 9 },
  { name: 'S', type: 'timestamp_ntz', scale: 9 },
  { name: 'P', type: 'timestamp_ntz', scale: 9 },
  { name: 'L', type: 'timestamp_ltz', scale: 9 },
  { name: 'W', type: 'timestamp_tz', scale: 9 },
  { name: 'V', type: 'variant' },
  { name: 'Z', type: 'text' },
];
const ROW = [
  '9007199254740993',
  '1.10',
  '1.5',
  'true',
  'é',
  '00FF',
  '19782',
  '43200.250000000',
  '1704164645.678901000',
  '-1.500000000',
  '1704164645.678901000',
  '1704164645.678901000 1320',
  '{"k":1}',
  null,
];

function answer({ method, path, headers, body }: StandInRequest): StandInAnswer | undefined {
  const refused = { status: 401, body: { code: '390303', message: 'Invalid OAuth access token' } };
  if (!isAuthorized(headers.authorization ?? '', headers['x-snowflake-authorization-token-type']))
    return refused;
  const { pathname, searchParams } = new URL(path, 'http://x');
  if (method === 'POST' && pathname === '/api/v2/statements') {
    const { statement, schema, warehouse }: Record<string, string> = JSON.parse(body);
    if (warehouse !== 'WH') return { status: 422, body: { code: '390201', message: 'No warehouse' } };
    if (statement === 'SELEC')
      return { status: 422, body: { code: '001003', message: 'syntax error secret-token' } };
    const handle =
      statement === 'SELECT forever'
        ? 'forever'
        : statement === 'SELECT CURRENT_SCHEMA()'
          ? `schema-${schema}`
          : 'h';
    return { status: 202, body: { code: '333334', statementHandle: handle } };
  }
  if (method === 'POST') return { body: { code: '000604' } };
  const done = (rowType: object[], partitions: number, data: unknown[]) => ({
    body: { code: '090001', resultSetMetaData: { rowType, partitionInfo: Array(partitions).fill({}) }, data },
  });
  if (pathname.endsWith('/forever')) return { status: 202, body: { statementHandle: 'forever' } };
  if (pathname.includes('/schema-'))
    return done(ROW_TYPE.slice(4, 5), 1, [[pathname.endsWith('-PUBLIC') ? 'PUBLIC' : null]]);
  if (searchParams.get('partition') === null) return done(ROW_TYPE, 2, [ROW]);
  return { headers: { 'content-encoding': 'gzip' }, body: gzipSync(JSON.stringify({ data: [ROW] })) };
}

function isAuthorized(authorization: string, type: unknown): boolean {
  const token = authorization.replace('Bearer ', '');
  if (type === 'PROGRAMMATIC_ACCESS_TOKEN') return token === 'secret-token';
  const [header = '', claims = '', signature = ''] = token.split('.');
  const der = createPublicKey(KEYS.publicKey).export({ type: 'spki', format: 'der' });
  const { iss, sub, iat, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  const fingerprint = createHash('sha256').update(der).digest('base64');
  return (
    type === 'KEYPAIR_JWT' &&
    verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      KEYS.publicKey,
      Buffer.from(signature, 'base64url'),
    ) &&
    sub === 'MYORG-ACCOUNT.ANALYST' &&
    iss === `MYORG-ACCOUNT.ANALYST.SHA256:${fingerprint}` &&
    exp - iat <= 3600
  );
}

async function snowflake(
  owner: Owner,
  { token = 'secret-token', ...overrides }: Record<string, string> = {},
) {
  const { port, requests } = await httpStandIn(owner, answer);
  const connection = {
    kind: 'snowflake',
    account: 'myorg-account',
    user: 'analyst',
    warehouse: 'WH',
    database: 'SALES',
    schema: 'PUBLIC',
    url: `https://localhost:${port}`,
    ca_certificate: TEST_CERTIFICATE,
    ...(overrides.private_key === undefined && { token }),
    ...overrides,
  };
  return { connection, requests };
}

const OTHER_KEY = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;
const BROKEN_KEY = '-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----';

testProbes(snowflake, {
  'a snowflake connection works with a token': [{}, true, 'The connection works.'],
  'a snowflake connection works with a key pair': [
    { private_key: KEYS.privateKey },
    true,
    'The connection works.',
  ],
  'a wrong token is rejected': [{ token: 'wrong' }, false, FAILURES.authentication],
  'a key of another pair is rejected': [{ private_key: OTHER_KEY }, false, FAILURES.authentication],
  'an invalid key is rejected': [{ private_key: BROKEN_KEY }, false, FAILURES.authentication],
  'a missing schema is reported': [{ schema: 'NONE' }, false, FAILURES.database_missing],
  'a missing warehouse is reported': [{ warehouse: 'NONE' }, false, FAILURES.database_missing],
});

test('values of every common type are returned unchanged, partition by partition', async (t) => {
  const session = await probeFixture(t).open((await snowflake(t)).connection);
  const types =
    'integer decimal float boolean text bytes date time timestamp timestamp timestamptz timestamptz json text'.split(
      ' ',
    );
  const row = [
    9007199254740993n,
    '1.10',
    1.5,
    true,
    'é',
    new Uint8Array([0, 255]),
    '2024-02-29',
    '12:00:00.250000',
    '2024-01-02 03:04:05.678901',
    '1969-12-31 23:59:58.500000',
    '2024-01-02 03:04:05.678901+00:00',
    '2024-01-02 01:04:05.678901-02:00',
    '{"k":1}',
    null,
  ];
  assert.deepEqual(await ask(session, 'SELECT * FROM x'), {
    columns: ROW_TYPE.map(({ name }, at) => ({ name, type: types[at] })),
    rows: [row, row],
  });
});

test('parameters are sent as bindings', async (t) => {
  const { connection, requests } = await snowflake(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT ?', { parameters: ["it's", 5n, 1.5, null, true, new Uint8Array([255]), 2] });
  assert.deepEqual(JSON.parse(requests[0]?.body ?? '').bindings, {
    1: { type: 'TEXT', value: "it's" },
    2: { type: 'FIXED', value: '5' },
    3: { type: 'REAL', value: '1.5' },
    4: { type: 'TEXT', value: null },
    5: { type: 'BOOLEAN', value: 'true' },
    6: { type: 'BINARY', value: 'ff' },
    7: { type: 'REAL', value: '2' },
  });
});

test("the server's error message for a statement is passed on, without the token", async (t) => {
  const session = await probeFixture(t).open((await snowflake(t)).connection);
  await assert.rejects(ask(session, 'SELEC', { readOnly: false }), {
    category: 'query',
    detail: 'syntax error [secret]',
  });
  await assert.rejects(ask(session, 'DROP TABLE x'), { category: 'query' });
});

test('a cancelled query is cancelled in the server', async (t) => {
  const { connection, requests } = await snowflake(t);
  const session = await probeFixture(t).open(connection);
  await askAndCancel(session, 'SELECT forever', () => requests.length >= 2);
  assert.deepEqual(
    [requests.at(-1)?.method, requests.at(-1)?.path],
    ['POST', '/api/v2/statements/forever/cancel'],
  );
});

test('one text is one statement, in the same form with any account setting, and agents cannot chain statements', async (t) => {
  const { connection, requests } = await snowflake(t);
  const session = await probeFixture(t).open(connection);
  await assert.rejects(ask(session, 'SELECT 1 ->> DROP TABLE a'), {
    detail: 'Only statements that read are allowed here.',
  });
  await ask(session, 'SELECT CURRENT_SCHEMA()');
  assert.deepEqual(
    requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body).parameters),
    [{ MULTI_STATEMENT_COUNT: '1', BINARY_OUTPUT_FORMAT: 'HEX', ROWS_PER_RESULTSET: '0' }],
  );
});

test('a value that is not a REAL number stays unchanged', () => {
  const described = ['inf', '-inf', 'NaN', '1.5e300'].map(() => ({ type: 'real' }));
  assert.deepEqual(cellsOf(['inf', '-inf', 'NaN', '1.5e300'], described), [
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NaN,
    1.5e300,
  ]);
});
