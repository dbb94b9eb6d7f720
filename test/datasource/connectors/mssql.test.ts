/**
 * Runs the real driver against a stand-in that speaks TDS. The driver is installed on demand: these tests look for it
 * next to the server, or in the `node_modules` of `TROUPE_TEST_DRIVERS`. Without it they are skipped; with `CI=true`
 * they fail.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type DriverLoader, installedDrivers, OPTIONAL_DRIVERS } from '#src/datasource/connectors/drivers.ts';
import { cellOf } from '#src/datasource/connectors/mssql/values.ts';
import { DATASOURCE_FAILURES } from '#src/datasource/failure.ts';
import { listeningWith, type Owner } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';
import { cannot, conformance, type Overrides } from './conformance.ts';
import { ATTENTION, BATCH, LARGE, MANY, RPC, tdsStandIn } from './tds-stand-in.ts';

const elsewhere = process.env.TROUPE_TEST_DRIVERS;
const drivers: DriverLoader =
  elsewhere === undefined
    ? installedDrivers
    : async (name) => createRequire(join(elsewhere, 'package.json'))(name);
const isInstalled = await drivers('tedious').then(
  () => true,
  () => false,
);
const isLenient = process.env.CI !== 'true';
const skip =
  !isInstalled &&
  isLenient &&
  `the driver is not installed: npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`;

async function mssql(owner: Owner, overrides: Overrides = {}) {
  const { port, logins, types, resets, isRunning, lastCall, disconnect } = await tdsStandIn(owner);
  const connection = {
    kind: 'mssql',
    host: '127.0.0.1',
    port,
    database: 'sales',
    user: 'analyst',
    password: 'secret-password',
    ...overrides,
  };
  const received = {
    statements: () => (lastCall().length > 0 ? [String(lastCall()[0])] : []),
    parameters: lastCall,
    cancellations: () => types.filter((type) => type === ATTENTION).map(String),
  };
  return {
    connection,
    logins,
    types,
    resets,
    fixture: probeFixture(owner, { drivers }),
    received,
    passwords: () => logins.length,
    observe: () => ({ isRunning, disconnect }),
  };
}

const ONLY_READING = 'Only statements that read are allowed here.';

conformance({
  kind: 'mssql',
  skip,
  start: mssql,
  rules: {
    works: { 'with a password': {} },
    wrongCredentials: { 'an unknown user': { user: 'none' } },
    missing: { database: { database: 'none' } },
    withoutTls: { tls: 'disable' },
    requiredTls: { require: { tls: 'require' }, 'verify-full': { tls: 'verify-full' } },
    unknownCertificate: cannot(
      'the stand-in has no TLS; test/datasource/egress/tls-mode.test.ts has the rule',
    ),
    values: {
      sql: 'SELECT * FROM item',
      columns:
        'i:integer l:integer b:boolean f:float d:decimal t:text y:bytes a:date s:timestamp u:uuid z:text',
      rows: [
        [
          7,
          9007199254740993n,
          true,
          1.5,
          '1.100000',
          'é',
          new Uint8Array([0, 255]),
          '2024-02-29',
          '2024-01-02 03:04:05.678901',
          '5B4D2F8E-0B2A-4F0E-9A55-1C1F5B0A7D3E',
          null,
        ],
      ],
    },
    noRows: { sql: 'SELECT nothing', columns: [{ name: 'one', type: 'integer' }] },
    noResult: 'INSERT three',
    manyRows: { sql: 'SELECT many', total: MANY, last: [MANY] },
    largeRows: { sql: 'SELECT large rows', total: LARGE[0], most: 20 },
    tooLarge: { beyond: 'SELECT endless', category: 'row_too_large' },
    longNames: cannot('a name in its protocol has at most 255 characters'),
    parameters: {
      sql: 'SELECT ?, ?, ?, ?, ?, ?, ?, ?',
      received: [
        'SELECT @p1, @p2, @p3, @p4, @p5, @p6, @p7, @p8',
        '@p1 nvarchar(23), @p2 bigint, @p3 bigint, @p4 float, @p5 float, @p6 nvarchar(1), @p7 bit, @p8 varbinary(2)',
        "it's; DROP TABLE x -- \\",
        5n,
        9007199254740993n,
        1.5,
        2,
        null,
        true,
        new Uint8Array([255, 0]),
      ],
    },
    infinity: { sql: 'SELECT ?, ?', detail: 'This database has neither infinity nor NaN.' },
    writes: Object.fromEntries(
      [
        'DROP TABLE x',
        'SELECT 1 DROP TABLE x',
        'SELECT 1 INTO x',
        "EXEC('x')",
        "/* /* */ SELECT */ sp_rename 'a', 'b'",
        'SELECT 1 DISABLE TRIGGER ALL ON DATABASE',
        'SELECT 1; RECEIVE * FROM queue',
        'SELECT NEXT /* a */ VALUE FOR numbers',
        "SELECT * FROM OPENDATASOURCE('MSOLEDBSQL', 'x').a.b.c",
      ].map((sql) => [sql, ONLY_READING]),
    ),
    message: { sql: 'SELECT wrong', detail: 'Wrong near [secret].' },
    several: { 'SELECT 1 SELECT 2': 'Statements with several results are not supported.' },
    abandoned: 'SELECT partly',
    cancelled: 'SELECT forever',
    cancelledEarly: cannot('a statement is cancelled on the connection that has sent it'),
    endsByItself: ['SELECT 1', 'SELECT wrong'],
    lost: 'SELECT partly',
    lostWhileIdle: true,
    changed: { sql: 'INSERT three', count: 3 },
  },
});

test('the error for a missing driver names the driver and the command that installs it', async (t) => {
  const fixture = probeFixture(t, { drivers: () => import(String('no-such-package')) });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), {
    ok: false,
    message: `The driver for this kind of database is not installed on the server. Install it on the server with: npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`,
  });
});

test('the reason why a driver cannot be loaded is not revealed', async (t) => {
  const fixture = probeFixture(t, { drivers: () => Promise.reject(new Error('canary')) });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), { ok: false, message: DATASOURCE_FAILURES.failed });
});

test('the error for a driver of another version names the driver and the command that installs the right version', async (t) => {
  const fixture = probeFixture(t, {
    drivers: async () => ({ Connection: class {}, Request: class {}, TYPES: {} }),
  });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), {
    ok: false,
    message: `The driver for this kind of database is installed on the server in another version than it was written for. Install it on the server with: npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`,
  });
});

test('a server whose answer to the login cannot be read ends the probe at once', { skip }, async (t) => {
  const { connection, fixture } = await mssql(t, { user: 'unreadable', tls: 'disable' });
  assert.deepEqual(await fixture.probe(connection), { ok: false, message: DATASOURCE_FAILURES.failed });
});

for (const [user, warnings] of [
  ['analyst', []],
  ['analyst-writing', ['account_may_write']],
  ['analyst-unasked', ['account_rights_unknown']],
] as const) {
  test(`a test of the account ${user} warns of ${warnings.join() || 'nothing'}`, { skip }, async (t) => {
    const { connection, fixture } = await mssql(t, { user });
    assert.deepEqual(await fixture.warnings(connection), warnings);
    assert.deepEqual(await fixture.probe(connection), { ok: true, message: 'The connection works.' });
  });
}

test('a server that closes its side of a connection ends this connection only', { skip }, async (t) => {
  const port = await listeningWith(t, (socket) => socket.end());
  const fixture = probeFixture(t, { drivers });
  const connection = { kind: 'mssql', host: '127.0.0.1', port, database: 'a', user: 'a', password: 'a' };
  for (const tls of ['require', 'disable']) {
    assert.deepEqual(await fixture.probe({ ...connection, tls }), {
      ok: false,
      message: DATASOURCE_FAILURES.unreachable,
    });
  }
});

for (const sql of ['SELECT unreadable', 'SELECT never']) {
  test(`when the result of ${sql} cannot be read, only the statement fails`, { skip }, async (t) => {
    const { connection, fixture } = await mssql(t);
    await assert.rejects(ask(await fixture.open(connection), sql), { category: 'failed' });
  });
}

test('a server can redirect its clients only to allowed addresses', { skip }, async (t) => {
  const { connection, fixture, logins } = await mssql(t, { user: 'redirected' });
  assert.deepEqual(await fixture.probe(connection), { ok: false, message: DATASOURCE_FAILURES.not_allowed });
  assert.equal(logins.length, 1);
});

test('a decimal is exact, or refused with advice', { skip }, async (t) => {
  const { connection, fixture } = await mssql(t);
  const { rows } = await ask(await fixture.open(connection), 'SELECT decimal of 15');
  assert.deepEqual(rows, [['123456789.012345']]);
  const session = await fixture.open(connection);
  await assert.rejects(ask(session, 'SELECT decimal of 16'), {
    category: 'query',
    detail:
      'The column "amount" has a decimal of more than 15 digits, which the driver of SQL Server rounds. Cast it to varchar, or to float.',
  });
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});

test('a tenth of a microsecond at the end of a time is cut off, and never rounded up', () => {
  const last = Object.assign(new Date('9999-12-31T23:59:59.999Z'), { nanosecondsDelta: 0.0009999 });
  const column = { colName: 'until', scale: 7, type: { name: 'DateTime2' } };
  assert.equal(cellOf(last, column), '9999-12-31 23:59:59.999999');
});

test('the server resets a connection before another statement gets it', { skip }, async (t) => {
  const { connection, fixture, types, resets } = await mssql(t);
  const session = await fixture.open(connection);
  await ask(session, "SELECT 1 EXEC sp_set_session_context 'tenant', 2", { readOnly: false });
  await session.reset?.();
  await ask(session, 'SELECT 1');
  assert.deepEqual([types.slice(-3), resets], [[RPC, BATCH, RPC], [BATCH]]);
});

test('docs/datasources.md names the driver that must be installed on demand', () => {
  const page = readFileSync(
    fileURLToPath(new URL('../../../../docs/datasources.md', import.meta.url)),
    'utf8',
  );
  assert(page.includes(`npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`));
});
