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
import { cellOf, typeFor } from '#src/datasource/connectors/mssql/values.ts';
import { FAILURES } from '#src/datasource/failure.ts';
import { listeningWith, type Owner } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';
import { BATCH, RPC, tdsStandIn } from './tds-stand-in.ts';

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

async function mssql(owner: Owner, overrides: object = {}) {
  const { port, logins, types, resets } = await tdsStandIn(owner);
  const connection = {
    kind: 'mssql',
    host: '127.0.0.1',
    port,
    database: 'sales',
    user: 'analyst',
    password: 'secret-password',
    ...overrides,
  };
  return { connection, logins, types, resets, fixture: probeFixture(owner, { drivers }) };
}

test('a missing driver is named, with the command that installs it', async (t) => {
  const fixture = probeFixture(t, { drivers: () => import(String('no-such-package')) });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), {
    ok: false,
    message: `The driver for this kind of database is not installed on the server. Install it there with: npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`,
  });
});

test('the reason why a driver cannot be loaded is not revealed', async (t) => {
  const fixture = probeFixture(t, { drivers: () => Promise.reject(new Error('canary')) });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), { ok: false, message: FAILURES.failed });
});

test('a driver of another version is named, with the command that installs the right one', async (t) => {
  const fixture = probeFixture(t, {
    drivers: async () => ({ Connection: class {}, Request: class {}, TYPES: {} }),
  });
  const { connection } = await mssql(t);
  assert.deepEqual(await fixture.probe(connection), {
    ok: false,
    message: `The driver for this kind of database is installed on the server in another version than it was written for. Install it there with: npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`,
  });
});

const PROBES: Readonly<Record<string, readonly [overrides: object, ok: boolean, message: string]>> = {
  'a mssql connection works': [{}, true, 'The connection works.'],
  'a connection works without TLS if it disables TLS': [{ tls: 'disable' }, true, 'The connection works.'],
  'an unknown user is rejected': [{ user: 'none' }, false, FAILURES.authentication],
  'a server whose answer to the login cannot be read ends the probe at once': [
    { user: 'unreadable', tls: 'disable' },
    false,
    FAILURES.failed,
  ],
  'a missing database is reported': [{ database: 'none' }, false, FAILURES.database_missing],
};

for (const [sentence, [overrides, ok, message]] of Object.entries(PROBES)) {
  test(sentence, { skip }, async (t) => {
    const { connection, fixture } = await mssql(t, overrides);
    assert.deepEqual(await fixture.probe(connection), { ok, message });
  });
}

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

for (const tls of ['require', 'verify-full']) {
  test(`with ${tls}, a server without TLS never receives the password`, { skip }, async (t) => {
    const { connection, fixture, logins } = await mssql(t, { tls });
    assert.deepEqual(await fixture.probe(connection), { ok: false, message: FAILURES.tls });
    assert.deepEqual(logins, []);
  });
}

test('a server that closes its side of a connection ends this connection only', { skip }, async (t) => {
  const port = await listeningWith(t, (socket) => socket.end());
  const fixture = probeFixture(t, { drivers });
  const connection = { kind: 'mssql', host: '127.0.0.1', port, database: 'a', user: 'a', password: 'a' };
  for (const tls of ['require', 'disable']) {
    assert.deepEqual(await fixture.probe({ ...connection, tls }), {
      ok: false,
      message: FAILURES.unreachable,
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
  assert.deepEqual(await fixture.probe(connection), { ok: false, message: FAILURES.not_allowed });
  assert.equal(logins.length, 1);
});

test('values are returned unchanged', { skip }, async (t) => {
  const { connection, fixture } = await mssql(t);
  assert.deepEqual(await ask(await fixture.open(connection), 'SELECT * FROM item'), {
    columns: [
      { name: 'id', type: 'integer' },
      { name: 'name', type: 'text' },
    ],
    rows: [
      [7, 'é'],
      [8, null],
    ],
  });
});

test('a decimal is exact, or refused with advice', { skip }, async (t) => {
  const { connection, fixture } = await mssql(t);
  const { rows } = await ask(await fixture.open(connection), 'SELECT decimal of 15');
  assert.deepEqual(rows, [['123456789.012345']]);
  await assert.rejects(ask(await fixture.open(connection), 'SELECT decimal of 16'), {
    category: 'query',
    detail:
      'The column "amount" has a decimal of more than 15 digits, which the driver of SQL Server rounds. Cast it to varchar, or to float.',
  });
});

test('a tenth of a microsecond at the end of a time is cut off, and never rounded up', () => {
  const last = Object.assign(new Date('9999-12-31T23:59:59.999Z'), { nanosecondsDelta: 0.0009999 });
  const column = { colName: 'until', scale: 7, type: { name: 'DateTime2' } };
  assert.equal(cellOf(last, column), '9999-12-31 23:59:59.999999');
});

test("the server's error message for a statement is passed on, without the password", { skip }, async (t) => {
  const { connection, fixture } = await mssql(t);
  const session = await fixture.open(connection);
  await assert.rejects(ask(session, 'SELECT wrong'), { category: 'query', detail: 'Wrong near [secret].' });
});

for (const sql of [
  'DROP TABLE x',
  'SELECT 1 DROP TABLE x',
  'SELECT 1 INTO x',
  "EXEC('x')",
  "/* /* */ SELECT */ sp_rename 'a', 'b'",
  'SELECT 1 DISABLE TRIGGER ALL ON DATABASE',
  'SELECT 1; RECEIVE * FROM queue',
  'SELECT NEXT /* a */ VALUE FOR numbers',
  "SELECT * FROM OPENDATASOURCE('MSOLEDBSQL', 'x').a.b.c",
]) {
  test(`in read-only mode ${sql} is not sent`, { skip }, async (t) => {
    const { connection, fixture } = await mssql(t);
    const detail = 'Only statements that read are allowed here.';
    await assert.rejects(ask(await fixture.open(connection), sql), { category: 'query', detail });
  });
}

test('the number of changed rows is passed on', { skip }, async (t) => {
  const { connection, fixture } = await mssql(t);
  const counts: number[] = [];
  const onChanged = (rows: number) => counts.push(rows);
  const session = await fixture.open(connection);
  await ask(session, 'INSERT three', { readOnly: false, onChanged });
  await ask(session, 'SELECT 1', { onChanged });
  assert.deepEqual(counts, [3]);
});

test('the server resets a connection before another statement gets it', { skip }, async (t) => {
  const { connection, fixture, types, resets } = await mssql(t);
  const session = await fixture.open(connection);
  await ask(session, "SELECT 1 EXEC sp_set_session_context 'tenant', 2", { readOnly: false });
  await session.reset?.();
  await ask(session, 'SELECT 1');
  assert.deepEqual([types.slice(-3), resets], [[RPC, BATCH, RPC], [BATCH]]);
});

test('a whole float is sent as a float, and an integer as an integer', () => {
  assert.deepEqual([2, 2.5, 2n].map(typeFor), ['Float', 'Float', 'BigInt']);
});

test('a cancelled query ends, and the session can be used again', { skip }, async (t) => {
  const { connection, fixture, types } = await mssql(t);
  const session = await fixture.open(connection);
  const stop = new AbortController();
  const waiting = ask(session, 'SELECT forever', { signal: stop.signal });
  while (!types.includes(RPC)) await new Promise(setImmediate);
  stop.abort();
  await assert.rejects(waiting, { category: 'cancelled' });
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});

test('docs/datasources.md names the driver that must be installed on demand', () => {
  const page = readFileSync(
    fileURLToPath(new URL('../../../../docs/datasources.md', import.meta.url)),
    'utf8',
  );
  assert(page.includes(`npm install --no-save tedious@${OPTIONAL_DRIVERS.tedious}`));
});
