/** Runs against a real PostgreSQL, also as `redshift`, which speaks the same protocol. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { ROW_LIMIT_BYTES } from '#src/datasource/rows.ts';
import { eventually } from '#test/support/processes.ts';
import { postgresServer as server } from '#test/support/stand-ins/databases.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '#test/support/stand-ins/test-certificate.ts';
import { type PostgresParts, postgresConnection, redshiftConnection } from '../connections.ts';
import { listeningWith, type Owner } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';
import { cannot, conformance, type Rules, type Running } from './conformance.ts';

const { skip } = server;

/** Accepts TLS as a PostgreSQL server does, and forwards the content. Returns the port. */
function overTls(owner: Owner): Promise<number> {
  return listeningWith(owner, (socket) => {
    socket.once('data', () => {
      socket.write('S');
      const plain = connect(server.port, server.host);
      const secure = new TLSSocket(socket, { isServer: true, cert: TEST_CERTIFICATE, key: TEST_KEY });
      for (const side of [plain, secure]) side.on('error', () => {});
      secure.once('close', () => plain.destroy());
      plain.pipe(secure).pipe(plain);
    });
  });
}

/** Returns the server of the tests, with the given connection to it. */
function running(owner: Owner, connection: object): Running {
  const fixture = probeFixture(owner);
  return {
    connection,
    fixture,
    async observe(session) {
      const other = await fixture.open(postgresConnection());
      const [[pid] = []] = (await ask(session, 'SELECT pg_backend_pid()')).rows;
      const parameters = [Number(pid)];
      return {
        async isRunning() {
          const sql =
            "SELECT count(*)::int FROM pg_stat_activity WHERE pid = $1 AND state = 'active' AND query <> 'BEGIN READ ONLY'";
          return (await ask(other, sql, { parameters })).rows[0]?.[0] === 1;
        },
        async disconnect() {
          await ask(other, 'SELECT pg_terminate_backend($1)', { parameters, readOnly: false });
        },
      };
    },
  };
}

const overTlsConnection = async (owner: Owner) => ({ host: '127.0.0.1', port: await overTls(owner) });
/** A row has this many bytes in addition to its one value: its length, its number of values and the value's length. */
const ROW_HEAD_BYTES = 11;
const LARGEST = ROW_LIMIT_BYTES - ROW_HEAD_BYTES;
/** The password of the server, or the one that `postgresConnection` has in its place. */
const SECRET = server.password || 'unused';
const ONLY_READING = 'Only SELECT, WITH, VALUES, TABLE, SHOW and EXPLAIN are allowed here.';

const RULES = {
  values: {
    sql: `SELECT true AS b, 1::int2 AS i, 9007199254740993 AS l, 1.5::float8 AS f, 'NaN'::float8 AS n, 1.10::numeric AS d,
      'é' AS t, '\\x00ff'::bytea AS y, date '2024-02-29' AS a, time '12:00' AS m, timestamp '2024-01-02 03:04:05.678901' AS s,
      '{"k": 1}'::jsonb AS j, '5b4d2f8e-0b2a-4f0e-9a55-1c1f5b0a7d3e'::uuid AS u, null::int AS z, '{1,2}'::int[] AS r`,
    columns:
      'b:boolean i:integer l:integer f:float n:float d:decimal t:text y:bytes a:date m:time s:timestamp j:json u:uuid z:integer r:other',
    rows: [
      [
        true,
        1,
        9007199254740993n,
        1.5,
        Number.NaN,
        '1.10',
        'é',
        new Uint8Array([0, 255]),
        '2024-02-29',
        '12:00:00',
        '2024-01-02 03:04:05.678901',
        '{"k": 1}',
        '5b4d2f8e-0b2a-4f0e-9a55-1c1f5b0a7d3e',
        null,
        '{1,2}',
      ],
    ],
  },
  noRows: { sql: 'SELECT 1 AS one WHERE false', columns: [{ name: 'one', type: 'integer' }] },
  noResult: 'SET application_name TO x',
  manyRows: { sql: 'SELECT i FROM generate_series(1, 100000) AS i', total: 100_000, last: [100_000] },
  largeRows: { sql: "SELECT repeat('x', 100000) FROM generate_series(1, 200)", total: 200, most: 20 },
  tooLarge: {
    largest: { sql: `SELECT repeat('x', ${LARGEST})`, lengths: [LARGEST] },
    beyond: `SELECT 1, repeat('x', ${LARGEST + 1})`,
    category: 'row_too_large',
  },
  longNames: cannot('a name has at most 63 bytes'),
  parameters: {
    sql: 'SELECT ?::text, ?::int, ?::bigint, ?::float8, ?::float8, ?::text, ?::bool, ?::bytea',
    rows: [
      ["it's; DROP TABLE x -- \\", 5, 9_007_199_254_740_993n, 1.5, 2, null, true, new Uint8Array([255, 0])],
    ],
  },
  infinity: {
    sql: 'SELECT ?::float8, ?::float8',
    rows: [[Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  },
  writes: {
    'CREATE TABLE troupe_x (a int)': ONLY_READING,
    'DELETE FROM pg_class': ONLY_READING,
    'SELECT 1; DROP TABLE troupe_x': undefined,
    'WITH a AS (DELETE FROM pg_class RETURNING 1) SELECT 1': undefined,
  },
  several: { 'SELECT 1; SELECT 2': 'cannot insert multiple commands into a prepared statement' },
  abandoned: "SELECT repeat('x', 100000) FROM generate_series(1, 200)",
  cancelled: 'SELECT pg_sleep(600)',
  cancelledEarly: cannot('a statement is cancelled by the id of its connection'),
  endsByItself: cannot('the server keeps no list of cancellations'),
  lost: "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)",
  lostWhileIdle: true,
  changed: {
    before: ['CREATE TEMP TABLE troupe_changed (a int)'],
    sql: 'INSERT INTO troupe_changed VALUES (1), (2), (3)',
    count: 3,
  },
} as const satisfies Partial<Rules>;

conformance({
  kind: 'postgres',
  skip,
  start: (t, parts: PostgresParts = {}) => running(t, postgresConnection(parts)),
  rules: {
    ...RULES,
    works: { 'with a password': {} },
    wrongCredentials: { 'an unknown user': { user: 'no_such_user' } },
    missing: { database: { database: 'no_such' }, schema: { schema: 'no "such" \'schema' } },
    withoutTls: { query: '?sslmode=disable' },
    requiredTls: {
      require: { query: '?sslmode=require' },
      'verify-full': { query: '?sslmode=verify-full' },
    },
    unknownCertificate: async (t) =>
      postgresConnection({ ...(await overTlsConnection(t)), query: '?sslmode=verify-ca' }),
    message: { sql: `SELECT "${SECRET}"`, detail: 'column "[secret]" does not exist' },
  },
});

conformance({
  kind: 'redshift',
  skip,
  start: (t, overrides) => running(t, redshiftConnection(overrides)),
  rules: {
    ...RULES,
    works: { 'with a password': {} },
    wrongCredentials: { 'an unknown user': { user: 'no_such_user' } },
    missing: { database: { database: 'no_such' }, schema: { schema: 'no "such" \'schema' } },
    withoutTls: { tls: 'disable' },
    requiredTls: { require: { tls: 'require' }, 'verify-full': { tls: 'verify-full' } },
    unknownCertificate: async (t) =>
      redshiftConnection({ ...(await overTlsConnection(t)), tls: 'verify-ca' }),
    message: { sql: 'SELECT no_such_column', detail: 'column "no_such_column" does not exist' },
  },
});

test('names without a schema are looked up in the schema of the connection', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection({ schema: 'information_schema' }));
  assert.deepEqual((await ask(session, 'SELECT count(*) FROM sql_features WHERE false')).rows, [[0]]);
});

test('a large result comes in batches of a bounded size, and all its rows arrive', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  const signal = new AbortController().signal;
  const wanted = 20_000;
  const sql = `SELECT n, repeat('x', 1000) FROM generate_series(1, ${wanted}) n`;
  const seen: unknown[] = [];
  for await (const { rows } of session.query(sql, [], { signal, readOnly: true })) {
    assert(rows.length < 2000, `${rows.length} rows of a kilobyte in one batch`);
    seen.push(...rows.map(([n]) => n));
  }
  assert.deepEqual(
    seen,
    Array.from({ length: wanted }, (_, at) => at + 1),
  );
});

test('a query that is cancelled between two portions of its rows runs no further portion', {
  skip,
}, async (t) => {
  const { fixture, connection, observe } = running(t, postgresConnection());
  const session = await fixture.open(connection);
  const { isRunning } = await observe(session);
  const stop = new AbortController();
  const sql = 'SELECT n, CASE WHEN n > 300 THEN pg_sleep(600) IS NULL END FROM generate_series(1, 1000) n';
  const rows = session.query(sql, [], { signal: stop.signal, readOnly: false })[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.rowCount, 256);
  stop.abort();
  await assert.rejects(Promise.resolve(rows.next()), { category: 'cancelled' });
  assert.equal(await isRunning(), false);
});

/** Begins each connection that only cancels a statement. */
const CANCEL_REQUEST = Buffer.from([0, 0, 0, 16, 4, 210, 22, 46]);

test('a cancel that the database does not follow is repeated', { skip }, async (t) => {
  let cancels = 0;
  const port = await listeningWith(t, (socket) => {
    socket.once('data', (first) => {
      if (first.subarray(0, 8).equals(CANCEL_REQUEST) && ++cancels === 1) return socket.destroy();
      const other = connect(server.port, server.host);
      other.on('error', () => {});
      socket.once('close', () => other.destroy());
      other.write(first);
      socket.pipe(other).pipe(socket);
    });
  });
  const { fixture, connection, observe } = running(t, postgresConnection({ host: '127.0.0.1', port }));
  const session = await fixture.open(connection);
  const { isRunning } = await observe(session);
  const stop = new AbortController();
  const asked = ask(session, 'SELECT pg_sleep(600)', { signal: stop.signal });
  asked.catch(() => {}); // it is awaited below
  await eventually('the statement runs', isRunning);
  stop.abort();
  await assert.rejects(asked, { category: 'cancelled' });
  assert.deepEqual([await isRunning(), cancels], [false, 2]);
});

test('the same rows arrive over TLS', { skip }, async (t) => {
  const port = await overTls(t);
  const connection = postgresConnection({ host: '127.0.0.1', port, query: '?sslmode=require' });
  const session = await probeFixture(t).open(connection);
  const sql = "SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n";
  const { rows } = await ask(session, sql);
  assert.deepEqual([rows.length, rows.at(-1)], [5000, [5000, 'x'.repeat(1000)]]);
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});
