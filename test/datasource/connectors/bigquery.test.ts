/** Runs against a stand-in that speaks BigQuery's REST API and issues access tokens as Google does. */
import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { FAILURES } from '#src/datasource/failure.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';
import { httpStandIn, type StandInAnswer, type StandInRequest } from '../http-stand-in.ts';
import type { Owner } from '../listening.ts';
import { ask, askAndCancel, probeFixture } from '../probe-fixture.ts';

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
    if (query === 'SELEC') return failed(400, 'invalidQuery', 'Syntax error private-part');
    const statementType = query.startsWith('SELECT') && !query.includes(';') ? 'SELECT' : 'SCRIPT';
    const jobId = query === 'SELECT forever' ? 'forever' : 'job';
    return {
      body: {
        jobReference: { ...jobReference, jobId, location: 'EU' },
        statistics: { query: { statementType } },
        status: { state: 'RUNNING' },
      },
    };
  }
  if (searchParams.get('location') !== 'EU') return failed(404, 'notFound', 'Not found: Job');
  if (pathname.endsWith('/forever')) return undefined;
  const page = searchParams.get('pageToken') === null ? { pageToken: 'next' } : {};
  return { body: { jobComplete: true, schema: { fields: FIELDS }, rows: [ROW], ...page } };
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

async function bigquery(owner: Owner, overrides: object = {}, private_key = KEYS.privateKey) {
  const { port, requests } = await httpStandIn(owner, answer);
  const connection = {
    kind: 'bigquery',
    project: 'my-project',
    dataset: 'sales',
    service_account: {
      type: 'service_account',
      client_email: EMAIL,
      private_key,
      token_uri: `https://localhost:${port}/token`,
    },
    url: `https://localhost:${port}`,
    ca_certificate: TEST_CERTIFICATE,
    ...overrides,
  };
  return { connection, requests };
}

const BROKEN_KEY = '-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----';

const PROBES: Readonly<
  Record<string, readonly [overrides: object, key: string, ok: boolean, message: string]>
> = {
  'a bigquery connection works': [{}, KEYS.privateKey, true, 'The connection works.'],
  'a key of another account is rejected': [{}, newKeys().privateKey, false, FAILURES.authentication],
  'an invalid key is rejected': [{}, BROKEN_KEY, false, FAILURES.authentication],
  'a missing dataset is reported': [{ dataset: 'none' }, KEYS.privateKey, false, FAILURES.database_missing],
  'a missing project is reported': [{ project: 'none' }, KEYS.privateKey, false, FAILURES.database_missing],
};

for (const [sentence, [overrides, key, ok, message]] of Object.entries(PROBES)) {
  test(sentence, async (t) => {
    const { connection } = await bigquery(t, overrides, key);
    assert.deepEqual(await probeFixture(t).probe(connection), { ok, message });
  });
}

test('values of every common type are returned unchanged, page by page', async (t) => {
  const { connection, requests } = await bigquery(t);
  const session = await probeFixture(t).open(connection);
  const types = 'boolean integer float decimal text bytes date timestamp timestamptz json json text'.split(
    ' ',
  );
  const row = [
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
  assert.deepEqual(await ask(session, 'SELECT * FROM x'), {
    columns: FIELDS.map(({ name }, at) => ({ name, type: types[at] })),
    rows: [row, row],
  });
  assert.equal(requests.filter(({ path }) => path === '/token').length, 1);
});

test('parameters are passed by position', async (t) => {
  const { connection, requests } = await bigquery(t);
  const session = await probeFixture(t).open(connection);
  await ask(session, 'SELECT ?', { parameters: ["it's", 5n, null, 2], readOnly: false });
  const { query } = JSON.parse(requests.find(({ path }) => path.endsWith('/jobs'))?.body ?? '').configuration;
  assert.deepEqual(
    [query.parameterMode, query.queryParameters],
    [
      'POSITIONAL',
      [
        { parameterType: { type: 'STRING' }, parameterValue: { value: "it's" } },
        { parameterType: { type: 'INT64' }, parameterValue: { value: '5' } },
        { parameterType: { type: 'STRING' }, parameterValue: {} },
        { parameterType: { type: 'FLOAT64' }, parameterValue: { value: '2' } },
      ],
    ],
  );
});

test('a read-only query is not run unless the service calls it a SELECT', async (t) => {
  const { connection, requests } = await bigquery(t);
  const session = await probeFixture(t).open(connection);
  await assert.rejects(ask(session, 'SELECT 1; DROP TABLE x'), { category: 'query' });
  const jobs = requests
    .filter(({ path }) => path.endsWith('/jobs'))
    .map(({ body }) => JSON.parse(body).configuration.dryRun);
  assert.deepEqual(jobs, [true]);
});

test("the service's error message for a statement is passed on", async (t) => {
  const session = await probeFixture(t).open((await bigquery(t)).connection);
  await assert.rejects(ask(session, 'SELEC', { readOnly: false }), {
    category: 'query',
    detail: 'Syntax error private-part',
  });
});

test('a cancelled query is cancelled in the service', async (t) => {
  const { connection, requests } = await bigquery(t);
  const session = await probeFixture(t).open(connection);
  await askAndCancel(
    session,
    'SELECT forever',
    () => requests.some(({ path }) => path.includes('/queries/')),
    { readOnly: false },
  );
  assert.equal(requests.at(-1)?.path, '/bigquery/v2/projects/my-project/jobs/forever/cancel?location=EU');
});
