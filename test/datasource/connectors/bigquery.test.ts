/** Runs against a stand-in that speaks BigQuery's REST API and issues access tokens as Google does. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
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

const newKeys = () =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
const KEYS = newKeys();
const EMAIL = 'analyst@my-project.iam.gserviceaccount.com';

const FIELDS = [
  { name: 'b', type: 'BOOLEAN' },
  { name: 'i', type: 'INTEGER' },
  { name: 'f', type: 'FLOAT' },
  { name: 'd', type: 'NUMERIC' },
  { name: 't', type: 'STRING' },
  { name: 'y', type: 'BYTES' },
  { name: 'a', type: 'DATE' },
  { name: 's', type: 'DATETIME' },
  { name: 'w', type: 'TIMESTAMP' },
  { name: 'l', type: 'INTEGER', mode: 'REPEATED' },
  {
    name: 'r',
    type: 'RECORD',
    fields: [
      { name: 'k', type: 'INTEGER' },
      { name: 'e', type: 'STRING', mode: 'REPEATED' },
    ],
  },
  { name: 'z', type: 'STRING' },
];
const ROW = {
  f: [
    'true',
    '9007199254740993',
    '1.5',
    '1.10',
    'é',
    'AP8=',
    '2024-02-29',
    '2024-01-02T03:04:05.678901',
    '1704164645678901',
    [{ v: '1' }, { v: '2' }],
    { f: [{ v: '1' }, { v: [{ v: 'x' }] }] },
    null,
  ].map((v) => ({ v })),
};

function answer({ method, path, headers, body }: StandInRequest, port: number): StandInAnswer | undefined {
  const { pathname, searchParams } = new URL(path, 'http://x');
  if (pathname === '/token')
    return isSigned(new URLSearchParams(body).get('assertion') ?? '', port)
      ? { body: { access_token: 'access', expires_in: 3599 } }
      : { status: 400, body: { error: 'invalid_grant' } };
  const failed = (status: number, reason: string, message: string) => ({
    status,
    body: { error: { code: status, message, errors: [{ reason, message }] } },
  });
  if (headers.authorization !== 'Bearer access') return failed(401, 'authError', 'Invalid Credentials');
  if (!pathname.startsWith('/bigquery/v2/projects/my-project/'))
    return failed(404, 'notFound', 'Not found: Project');
  if (pathname.endsWith('/datasets/sales')) return { body: { id: 'my-project:sales' } };
  if (pathname.includes('/datasets/')) return failed(404, 'notFound', 'Not found: Dataset');
  if (pathname.endsWith('/cancel')) return { body: {} };
  if (method === 'POST') {
    const { configuration, jobReference } = JSON.parse(body);
    const { query } = configuration.query;
    if (query === 'SELEC') return failed(400, 'invalidQuery', 'Syntax error secret-id');
    const statementType = query.startsWith('SELECT') && !query.includes(';') ? 'SELECT' : 'SCRIPT';
    return {
      body: {
        jobReference: { ...jobReference, jobId: query, location: 'EU' },
        statistics: { query: { statementType } },
        status: { state: 'RUNNING' },
      },
    };
  }
  if (searchParams.get('location') !== 'EU') return failed(404, 'notFound', 'Not found: Job');
  const isFirst = searchParams.get('pageToken') === null;
  return pageOf(decodeURIComponent(pathname.split('/').at(-1) ?? ''), isFirst);
}

/** Returns the page of a statement; nothing for a page that never comes. */
function pageOf(sql: string, isFirst: boolean): StandInAnswer | undefined {
  if (sql === 'SELECT forever') return undefined;
  if (sql === 'SELECT large') return tooLargePage();
  const done = (fields: readonly object[], rows: readonly object[], hasMore: boolean) => ({
    body: { jobComplete: true, schema: { fields }, rows, ...(hasMore && { pageToken: 'next' }) },
  });
  if (sql === 'SELECT long names') {
    const fields = LONG_TYPES.map((type) => ({ name: LONG_NAME, type }));
    return done(fields, [], false);
  }
  const result = resultOf(sql);
  if (result === undefined) return done(FIELDS, [ROW], isFirst);
  if (!isFirst) return undefined;
  const { column, rows, isPartial } = result;
  const fields = [{ name: column, type: 'INTEGER' }];
  return done(
    fields,
    rows.map(([value]) => ({ f: [{ v: String(value) }] })),
    isPartial === true,
  );
}

function isSigned(assertion: string, port: number): boolean {
  const [header = '', claims = '', signature = ''] = assertion.split('.');
  const { iss, scope, aud } = JSON.parse(Buffer.from(claims, 'base64url').toString());
  return (
    verify(
      'sha256',
      Buffer.from(`${header}.${claims}`),
      KEYS.publicKey,
      Buffer.from(signature, 'base64url'),
    ) &&
    iss === EMAIL &&
    scope === 'https://www.googleapis.com/auth/bigquery' &&
    aud === `https://localhost:${port}/token`
  );
}

const connectionTo = (port: number, private_key = KEYS.privateKey) => ({
  kind: 'bigquery',
  project: 'my-project',
  dataset: 'sales',
  service_account: {
    type: 'service_account',
    client_email: EMAIL,
    private_key,
    private_key_id: 'secret-id',
    token_uri: `https://localhost:${port}/token`,
  },
  url: `https://localhost:${port}`,
  ca_certificate: TEST_CERTIFICATE,
});

function bigquery(owner: Owner, { key, ...overrides }: Overrides = {}) {
  return startHttp(
    owner,
    {
      statementIn({ path, body }) {
        if (!path.endsWith('/jobs')) return undefined;
        const { dryRun, query } = JSON.parse(body).configuration;
        return dryRun ? undefined : query.query;
      },
      parametersIn({ body }) {
        const { query } = JSON.parse(body).configuration;
        return [query.parameterMode, query.queryParameters];
      },
      isPoll: ({ path }) => path.includes('/queries/SELECT%20forever'),
      isCancel: ({ path }) => path.includes('/cancel?'),
      answer,
    },
    (port) => ({ ...connectionTo(port, typeof key === 'string' ? key : undefined), ...overrides }),
  );
}

const BROKEN_KEY = '-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----';
const CELLS = [
  true,
  9007199254740993n,
  1.5,
  '1.10',
  'é',
  new Uint8Array([0, 255]),
  '2024-02-29',
  '2024-01-02 03:04:05.678901',
  '2024-01-02 03:04:05.678901+00:00',
  '[1,2]',
  '{"k":1,"e":["x"]}',
  null,
];
const parameter = (type: string, value?: string) => ({
  parameterType: { type },
  parameterValue: value === undefined ? {} : { value },
});
const ONLY_READING = 'Only statements that read are allowed here.';

conformance({
  kind: 'bigquery',
  start: bigquery,
  cancellation: /^POST \/bigquery\/v2\/projects\/my-project\/jobs\/SELECT%20forever\/cancel\?location=EU /,
  rules: {
    ...HTTP_RULES,
    works: { 'with a service account': {} },
    wrongCredentials: {
      'a key of another account': { key: newKeys().privateKey },
      'an invalid key': { key: BROKEN_KEY },
    },
    missing: { dataset: { dataset: 'none' }, project: { project: 'none' } },
    withoutTls: cannot('BigQuery is reached by https only'),
    requiredTls: { https: async (t) => connectionTo(await plainPort(t)) },
    values: {
      sql: 'SELECT *',
      columns:
        'b:boolean i:integer f:float d:decimal t:text y:bytes a:date s:timestamp w:timestamptz l:json r:json z:text',
      rows: [CELLS, CELLS],
    },
    parameters: {
      sql: 'SELECT ?',
      received: [
        'POSITIONAL',
        [
          parameter('STRING', "it's; DROP TABLE x -- \\"),
          parameter('INT64', '5'),
          parameter('INT64', '9007199254740993'),
          parameter('FLOAT64', '1.5'),
          parameter('FLOAT64', '2'),
          parameter('STRING'),
          parameter('BOOL', 'true'),
          parameter('BYTES', '/wA='),
        ],
      ],
    },
    infinity: {
      sql: 'SELECT ?, ?',
      received: ['POSITIONAL', [parameter('FLOAT64', 'Infinity'), parameter('FLOAT64', '-Infinity')]],
    },
    writes: { 'SELECT 1; DROP TABLE x': ONLY_READING, 'DROP TABLE x': ONLY_READING },
    message: { sql: 'SELEC', detail: 'Syntax error [secret]' },
  },
});

test('a session asks for one access token', async (t) => {
  const { connection, fixture, requests } = await bigquery(t);
  await ask(await fixture.open(connection), 'SELECT *');
  assert.equal(requests.filter(({ path }) => path === '/token').length, 1);
});

test('a read-only query runs only if the service classifies its statement as a SELECT', async (t) => {
  const { connection, fixture, requests } = await bigquery(t);
  const session = await fixture.open(connection);
  await assert.rejects(ask(session, 'SELECT 1; DROP TABLE x'), { category: 'query' });
  const jobs = requests
    .filter(({ path }) => path.endsWith('/jobs'))
    .map(({ body }) => JSON.parse(body).configuration.dryRun);
  assert.deepEqual(jobs, [true]);
});
