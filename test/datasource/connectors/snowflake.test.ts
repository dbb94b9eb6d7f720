/** Runs against a stand-in that speaks the SQL API of Snowflake. */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { snowflakeValues } from '#src/datasource/connectors/snowflake/values.ts';
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
    const handle = statement === 'SELECT CURRENT_SCHEMA()' ? `schema ${schema}` : statement;
    return { status: 202, body: { code: '333334', statementHandle: handle } };
  }
  if (method === 'POST') return { body: { code: '000604' } };
  const done = (rowType: object[], partitions: number, data: unknown[]) => ({
    body: { code: '090001', resultSetMetaData: { rowType, partitionInfo: Array(partitions).fill({}) }, data },
  });
  const handle = decodeURIComponent(pathname.split('/').at(-1) ?? '');
  const partition = searchParams.get('partition');
  if (handle === 'SELECT forever') return { status: 202, body: { statementHandle: handle } };
  if (handle === 'SELECT large') return tooLargePage();
  if (handle === 'SELECT long names')
    return done(
      LONG_TYPES.map((type) => ({ name: LONG_NAME, type })),
      1,
      [],
    );
  if (handle.startsWith('schema '))
    return done(ROW_TYPE.slice(4, 5), 1, [[handle.endsWith(' PUBLIC') ? 'PUBLIC' : null]]);
  const result = resultOf(handle);
  if (result !== undefined && partition !== null) return undefined;
  if (result !== undefined) {
    const { column, rows, isPartial } = result;
    const data = rows.map(([value]) => [String(value)]);
    return done([{ name: column, type: 'fixed', scale: 0 }], isPartial ? 2 : 1, data);
  }
  if (partition === null) return done(ROW_TYPE, 2, [ROW]);
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

const connectionTo = (port: number) => ({
  kind: 'snowflake',
  account: 'myorg-account',
  user: 'analyst',
  token: 'secret-token',
  warehouse: 'WH',
  database: 'SALES',
  schema: 'PUBLIC',
  url: `https://localhost:${port}`,
  ca_certificate: TEST_CERTIFICATE,
});

function snowflake(owner: Owner, overrides: Overrides = {}) {
  return startHttp(
    owner,
    {
      statementIn: ({ path, body }) =>
        path.includes('?async=true') ? JSON.parse(body).statement : undefined,
      parametersIn: ({ body }) => JSON.parse(body).bindings,
      isPoll: ({ path }) => path.endsWith('/SELECT%20forever'),
      isCancel: ({ path }) => path.endsWith('/cancel'),
      answer,
    },
    (port) => ({ ...connectionTo(port), ...overrides }),
  );
}

const OTHER_KEY = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;
const BROKEN_KEY = '-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----';
const withKey = (private_key: string) => ({ token: undefined, private_key });
const CELLS = [
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
const ONLY_READING = 'Only statements that read are allowed here.';

conformance({
  kind: 'snowflake',
  start: snowflake,
  cancellation: /^POST \/api\/v2\/statements\/SELECT%20forever\/cancel /,
  rules: {
    ...HTTP_RULES,
    works: { 'with a token': {}, 'with a key pair': withKey(KEYS.privateKey) },
    wrongCredentials: {
      'a wrong token': { token: 'wrong' },
      'a key of another pair': withKey(OTHER_KEY),
      'an invalid key': withKey(BROKEN_KEY),
    },
    missing: { schema: { schema: 'NONE' }, warehouse: { warehouse: 'NONE' } },
    withoutTls: cannot('Snowflake is reached by https only'),
    requiredTls: { https: async (t) => connectionTo(await plainPort(t)) },
    values: {
      sql: 'SELECT *',
      columns:
        'I:integer D:decimal F:float B:boolean T:text Y:bytes A:date M:time S:timestamp P:timestamp L:timestamptz W:timestamptz V:json Z:text',
      rows: [CELLS, CELLS],
    },
    parameters: {
      sql: 'SELECT ?',
      received: {
        1: { type: 'TEXT', value: "it's; DROP TABLE x -- \\" },
        2: { type: 'FIXED', value: '5' },
        3: { type: 'FIXED', value: '9007199254740993' },
        4: { type: 'REAL', value: '1.5' },
        5: { type: 'REAL', value: '2' },
        6: { type: 'TEXT', value: null },
        7: { type: 'BOOLEAN', value: 'true' },
        8: { type: 'BINARY', value: 'ff00' },
      },
    },
    infinity: {
      sql: 'SELECT ?, ?',
      received: { 1: { type: 'REAL', value: 'inf' }, 2: { type: 'REAL', value: '-inf' } },
    },
    writes: {
      'DROP TABLE x': ONLY_READING,
      'WITH a AS (SELECT 1) INSERT INTO b SELECT 1': ONLY_READING,
      'CALL x()': ONLY_READING,
      'SELECT 1 ->> DROP TABLE a': ONLY_READING,
    },
    message: { sql: 'SELEC', detail: 'syntax error [secret]' },
  },
});

test('each request allows one statement only, and fixes the form of values against settings of the account', async (t) => {
  const { connection, fixture, requests } = await snowflake(t);
  await ask(await fixture.open(connection), 'SELECT CURRENT_SCHEMA()');
  assert.deepEqual(
    requests.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(body).parameters),
    [{ MULTI_STATEMENT_COUNT: '1', BINARY_OUTPUT_FORMAT: 'HEX', ROWS_PER_RESULTSET: '0' }],
  );
});

test('a value that is not a REAL number stays unchanged', () => {
  const described = ['inf', '-inf', 'NaN', '1.5e300'].map(() => ({ type: 'real' }));
  assert.deepEqual(snowflakeValues(['inf', '-inf', 'NaN', '1.5e300'], described), [
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NaN,
    1.5e300,
  ]);
});
