/** Runs against a real MariaDB, as `mariadb` and as `mysql`. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { eventually } from '#test/support/processes.ts';
import { mariadbServer } from '#test/support/stand-ins/databases.ts';
import { mariadbConnection } from '../connections.ts';
import { listeningWith } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';
import { cannot, conformance } from './conformance.ts';

const { skip } = mariadbServer;
const NOT_SENT =
  'Only SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN are allowed here, without INTO OUTFILE or DUMPFILE.';
/** MariaDB sends four bytes of length before a value of this size. */
const LENGTH_BYTES = 4;
const LARGEST = 0xffffff - 1 - 2 * LENGTH_BYTES;
const halves = (bytes: number) => `SELECT REPEAT('x', 8000000), REPEAT('y', ${bytes - 8_000_000})`;

for (const kind of ['mariadb', 'mysql']) {
  conformance({
    kind,
    skip,
    start(owner, overrides = {}) {
      const fixture = probeFixture(owner);
      return {
        connection: mariadbConnection({ kind, ...overrides }),
        fixture,
        async observe(session) {
          const other = await fixture.open(mariadbConnection());
          const [[id] = []] = (await ask(session, 'SELECT CONNECTION_ID()')).rows;
          const state = `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ${id} AND info NOT LIKE '%TRANSACTION READ%'`;
          return {
            isRunning: async () => (await ask(other, state)).rows[0]?.[0] === 1,
            // The second time there is no connection to kill.
            disconnect: async () =>
              void (await ask(other, `KILL ${id}`, { readOnly: false }).catch(() => {})),
          };
        },
      };
    },
    rules: {
      works: { 'with a password': {} },
      wrongCredentials: { 'a wrong password': { user: 'no_such', password: 'wrong' } },
      missing: { database: { database: 'no_such' } },
      withoutTls: { tls: 'disable' },
      requiredTls: { require: { tls: 'require' }, 'verify-full': { tls: 'verify-full' } },
      unknownCertificate: cannot(
        'the server of the tests has no TLS; test/datasource/egress/tls-mode.test.ts has the rule',
      ),
      values: {
        sql: `SELECT 1 AS i, 9007199254740993 AS l, CAST(1.5 AS DOUBLE) AS f, 1.10 AS d, 'é' AS t, x'00ff' AS y,
          DATE '2024-02-29' AS a, TIME '12:00:00' AS m, TIMESTAMP '2024-01-02 03:04:05' AS s, CAST(null AS CHAR) AS z`,
        columns: 'i:integer l:integer f:float d:decimal t:text y:bytes a:date m:time s:timestamp z:text',
        rows: [
          [
            1,
            9007199254740993n,
            1.5,
            '1.10',
            'é',
            new Uint8Array([0, 255]),
            '2024-02-29',
            '12:00:00',
            '2024-01-02 03:04:05',
            null,
          ],
        ],
      },
      noRows: { sql: 'SELECT 1 AS one FROM dual WHERE false', columns: [{ name: 'one', type: 'integer' }] },
      noResult: 'SET @troupe = 1',
      manyRows: { sql: 'SELECT seq FROM seq_1_to_50000', total: 50_000, last: [50_000] },
      largeRows: { sql: "SELECT REPEAT('x', 100000) FROM seq_1_to_200", total: 200, most: 20 },
      tooLarge: {
        largest: { sql: halves(LARGEST), lengths: [8_000_000, LARGEST - 8_000_000] },
        beyond: halves(LARGEST + 1),
        category: 'row_too_large',
      },
      longNames: cannot('a name has at most 256 characters'),
      parameters: {
        sql: 'SELECT ?, ?, CAST(? AS INTEGER), ?, ?, ?, ?, ?',
        rows: [
          ["it's; DROP TABLE x -- \\", 5, 9_007_199_254_740_993n, 1.5, 2, null, 1, new Uint8Array([255, 0])],
        ],
      },
      infinity: { sql: 'SELECT ?, ?', detail: 'This database has neither infinity nor NaN.' },
      writes: {
        'CREATE TABLE troupe_x (a int)': NOT_SENT,
        'DELETE FROM mysql.time_zone': NOT_SENT,
        'SET SESSION TRANSACTION READ WRITE; CREATE TABLE troupe_x (a int)': NOT_SENT,
        "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE troupe_x": NOT_SENT,
        'WITH a AS (SELECT 1) SELECT NEXT VALUE FOR troupe_x': undefined,
        "SELECT 1 INTO OUTFILE '/nowhere/troupe'": NOT_SENT,
        "SELECT 1 INTO/**/DUMPFILE '/nowhere/troupe'": NOT_SENT,
        "SELECT 1 /*!50000INTO*/ /*!50000OUTFILE '/nowhere/troupe'*/": NOT_SENT,
        'EXECUTE IMMEDIATE CONCAT("SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'")': NOT_SENT,
        '/*! EXECUTE IMMEDIATE CONCAT(*/ SELECT "SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'")': NOT_SENT,
        'BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT("SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'"); END':
          NOT_SENT,
        "SET GLOBAL general_log_file = '/nowhere/troupe'": NOT_SENT,
      },
      message: { sql: 'SELECT no_such_column', detail: /no_such_column/ },
      several: { 'SELECT 1; SELECT 2': undefined },
      abandoned: "SELECT REPEAT('x', 100000) FROM seq_1_to_10000",
      cancelled: 'SELECT SLEEP(600)',
      cancelledEarly: cannot('a statement is cancelled by the id of its connection'),
      endsByItself: cannot('the server keeps no list of cancellations'),
      lost: "SELECT REPEAT('x', 100000) FROM seq_1_to_10000",
      lostWhileIdle: true,
      changed: {
        before: ['CREATE TEMPORARY TABLE troupe_changed (a int)'],
        sql: 'INSERT INTO troupe_changed VALUES (1), (2), (3)',
        count: 3,
      },
    },
  });
}

test('read-only mode is restored after a statement has lifted it', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  await ask(session, 'SET SESSION TRANSACTION READ WRITE', { readOnly: false });
  await assert.rejects(ask(session, 'CREATE TABLE troupe_x (a int)'), { category: 'query' });
});

test('dividing a whole float by an integer gives a float', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const { rows } = await ask(session, 'SELECT ? / 4, ? / 4', { parameters: [2, 2n] });
  assert.deepEqual(rows, [[0.5, 0.5]]);
});

test('a procedure with several results is refused, and a procedure with a single result is accepted', {
  skip,
}, async (t) => {
  const owner = await probeFixture(t).open(mariadbConnection());
  const run = (sql: string) => ask(owner, sql, { readOnly: false });
  await run('CREATE OR REPLACE PROCEDURE troupe_one() SELECT 1 AS a, 2 AS b');
  await run("CREATE OR REPLACE PROCEDURE troupe_two() BEGIN SELECT 1 AS a, 2 AS b; SELECT 'x' AS c; END");
  assert.deepEqual((await run('CALL troupe_one()')).rows, [[1, 2]]);
  await assert.rejects(run('CALL troupe_two()'), {
    category: 'query',
    detail: 'Statements with several results are not supported.',
  });
  await run('DROP PROCEDURE troupe_one');
  await run('DROP PROCEDURE troupe_two');
});

test('geometry comes as JSON, also in a statement with parameters', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const sql = "SELECT POINT(1, 2.5) AS p, ST_GeomFromText('LINESTRING(0 0, 1 1)') AS l, POINT(1, null) AS n";
  const expected = {
    columns: ['p', 'l', 'n'].map((name) => ({ name, type: 'json' })),
    rows: [['{"x":1,"y":2.5}', '[{"x":0,"y":0},{"x":1,"y":1}]', null]],
  };
  assert.deepEqual(await ask(session, sql), expected);
  const { rows } = await ask(session, `${sql}, ? AS a`, { parameters: ['x'] });
  assert.deepEqual(rows, [[...(expected.rows[0] ?? []), 'x']]);
});

test('values of MariaDB are the same with and without parameters', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const table = `troupe_same_${process.pid}`;
  const change = (sql: string) => ask(session, sql, { readOnly: false });
  await change(`CREATE TABLE ${table} (a FLOAT, b FLOAT(12,2), c TIME(3), d DATETIME(6), e TIME, f DOUBLE)`);
  try {
    await change(`INSERT INTO ${table} VALUES (0.1, 1.1, '100:00:00.5', '2026-01-02 03:04:05.5', '-25:00:00', 0.1),
      (16777216, 2097152.5, '-00:00:00', '2026-01-02', '00:00:00', 1e300), (1000005, 0.125, '12:00:00.123', null, null, 3),
      (-1234565, -0.375, null, '2026-01-02', '01:02:03', -0.5), (3.4e38, 0, '01:00:00', '2026-01-02', '01:02:03', 5), (1e-40, null, null, null, null, null)`);
    const plain = await ask(session, `SELECT * FROM ${table}`);
    const bound = await ask(session, `SELECT s.* FROM ${table} s WHERE 1 = ?`, { parameters: [1n] });
    assert.deepEqual(bound, plain);
    assert.deepEqual(plain.rows[0], [
      0.1,
      1.1,
      '100:00:00.500',
      '2026-01-02 03:04:05.500000',
      '-25:00:00',
      0.1,
    ]);
  } finally {
    await change(`DROP TABLE ${table}`);
  }
});

test('a cancel that does not reach the database is repeated', { skip }, async (t) => {
  let connections = 0;
  const port = await listeningWith(t, (socket) => {
    if (++connections === 2) return socket.destroy();
    const other = connect(mariadbServer.port, mariadbServer.host);
    other.on('error', () => {});
    socket.once('close', () => other.destroy());
    socket.pipe(other).pipe(socket);
  });
  const fixture = probeFixture(t);
  const session = await fixture.open(mariadbConnection({ host: '127.0.0.1', port, tls: 'disable' }));
  const watcher = await fixture.open(mariadbConnection());
  const [[id] = []] = (await ask(session, 'SELECT CONNECTION_ID()')).rows;
  const isRunning = async () => {
    const state = `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ${id} AND info LIKE '%SLEEP%'`;
    return (await ask(watcher, state)).rows[0]?.[0] === 1;
  };
  const stop = new AbortController();
  const asked = ask(session, 'SELECT SLEEP(600)', { signal: stop.signal, readOnly: false });
  asked.catch(() => {}); // it is awaited below
  await eventually('the statement runs', isRunning);
  stop.abort();
  await assert.rejects(asked, { category: 'cancelled' });
  await eventually('the statement has ended', async () => !(await isRunning()));
  assert.equal(
    connections,
    4,
    'the link, the lost cancel, its repetition, and the cancel of what may be left',
  );
});
