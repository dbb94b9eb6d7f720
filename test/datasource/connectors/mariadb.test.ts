/** Runs against a real MariaDB, as `mariadb` and as `mysql`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FAILURES } from '#src/datasource/failure.ts';
import { mariadbServer } from '#test/support/stand-ins/databases.ts';
import { mariadbConnection } from '../connections.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

const { skip } = mariadbServer;

const PROBES: Readonly<Record<string, readonly [overrides: object, ok: boolean, message: string]>> = {
  'a mariadb connection works': [{}, true, 'The connection works.'],
  'a mysql connection works': [{ kind: 'mysql' }, true, 'The connection works.'],
  'a connection works without TLS if it disables TLS': [{ tls: 'disable' }, true, 'The connection works.'],
  'a missing database is reported': [{ database: 'no_such' }, false, FAILURES.database_missing],
  'a wrong password is rejected': [{ user: 'no_such', password: 'wrong' }, false, FAILURES.authentication],
  'TLS that the server lacks is not given up': [{ tls: 'require' }, false, FAILURES.tls],
  'a connection that needs verified TLS fails if the server has no TLS': [
    { tls: 'verify-full' },
    false,
    FAILURES.tls,
  ],
};

for (const [sentence, [overrides, ok, message]] of Object.entries(PROBES)) {
  test(sentence, { skip }, async (t) => {
    assert.deepEqual(await probeFixture(t).probe(mariadbConnection(overrides)), { ok, message });
  });
}

test('values of every common type are returned unchanged', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const sql = `SELECT 1 AS i, 9007199254740993 AS l, CAST(1.5 AS DOUBLE) AS f, 1.10 AS d, 'é' AS t, x'00ff' AS y,
    DATE '2024-02-29' AS a, TIME '12:00:00' AS m, TIMESTAMP '2024-01-02 03:04:05' AS s, CAST(null AS CHAR) AS z`;
  const [columns, row] = [
    'i:integer l:integer f:float d:decimal t:text y:bytes a:date m:time s:timestamp z:text',
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
  ];
  const described = columns.split(' ').map((one) => {
    const [name = '', type = ''] = one.split(':');
    return { name, type };
  });
  assert.deepEqual(await ask(session, sql), { columns: described, rows: [row] });
});

test('parameters are sent separately from the statement', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const parameters = ["'; DROP TABLE x -- \\", 1.5, 9007199254740993n, null, new Uint8Array([1, 0]), 2, 2n];
  const sql = 'SELECT ?, ?, CAST(? AS INTEGER), ?, ?, ? / 4, ? / 4';
  assert.deepEqual((await ask(session, sql, { parameters })).rows, [
    [parameters[0], 1.5, 9007199254740993n, null, parameters[4], 0.5, 0.5],
  ]);
});

test('many rows come in batches, and never more than requested', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const all = await ask(session, 'SELECT seq FROM seq_1_to_50000');
  assert.deepEqual([all.rows.length, all.rows.at(-1)], [50_000, [50_000]]);
  assert.equal((await ask(session, 'SELECT seq FROM seq_1_to_5000000', { maxRows: 1500 })).rows.length, 1500);
  assert.deepEqual(await ask(session, 'SELECT 1 AS one FROM dual WHERE false'), {
    columns: [{ name: 'one', type: 'integer' }],
    rows: [],
  });
});

for (const sql of [
  'CREATE TABLE troupe_x (a int)',
  'SET SESSION TRANSACTION READ WRITE; CREATE TABLE troupe_x (a int)',
  'DELETE FROM mysql.time_zone',
  "LOAD DATA LOCAL INFILE '/etc/hostname' INTO TABLE troupe_x",
]) {
  test(`in read-only mode the server refuses ${sql}`, { skip }, async (t) => {
    const session = await probeFixture(t).open(mariadbConnection());
    await assert.rejects(ask(session, sql), { category: 'query' });
    assert.deepEqual((await ask(session, 'SELECT 1 AS one')).rows, [[1]]);
  });
}

for (const sql of [
  "SELECT 1 INTO OUTFILE '/nowhere/troupe'",
  "SELECT 1 INTO/**/DUMPFILE '/nowhere/troupe'",
  "SELECT 1 /*!50000INTO*/ /*!50000OUTFILE '/nowhere/troupe'*/",
  'EXECUTE IMMEDIATE CONCAT("SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'")',
  '/*! EXECUTE IMMEDIATE CONCAT(*/ SELECT "SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'")',
  'BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT("SELECT 1 INTO OUT", "FILE \'/nowhere/troupe\'"); END',
  "SET GLOBAL general_log_file = '/nowhere/troupe'",
]) {
  test(`in read-only mode this statement is not sent, since it may write a file: ${sql}`, {
    skip,
  }, async (t) => {
    const session = await probeFixture(t).open(mariadbConnection());
    await assert.rejects(ask(session, sql), {
      category: 'query',
      detail:
        'Only SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN are allowed here, without INTO OUTFILE or DUMPFILE.',
    });
  });
}

test('read-only mode is restored after a statement has lifted it', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  await ask(session, 'SET SESSION TRANSACTION READ WRITE', { readOnly: false });
  await assert.rejects(ask(session, 'CREATE TABLE troupe_x (a int)'), { category: 'query' });
});

test('a cancelled query ends in the server, and the session can be used again', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const [session, other] = [await fixture.open(mariadbConnection()), await fixture.open(mariadbConnection())];
  const [[id] = []] = (await ask(session, 'SELECT CONNECTION_ID()')).rows;
  const stop = new AbortController();
  const sleeping = ask(session, 'SELECT SLEEP(60)', { signal: stop.signal });
  const isSleeping = `SELECT COUNT(*) FROM information_schema.processlist WHERE id = ${id} AND info LIKE '%SLEEP(60)%'`;
  while ((await ask(other, isSleeping)).rows[0]?.[0] !== 1);
  stop.abort();
  await assert.rejects(sleeping, { category: 'cancelled' });
  assert.deepEqual((await ask(other, isSleeping)).rows, [[0]]);
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});

test('rows of any size come in batches of a bounded size', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  const signal = new AbortController().signal;
  const sizes: number[] = [];
  for await (const { rows } of session.query("SELECT REPEAT('x', 100000) FROM seq_1_to_200", [], {
    signal,
    readOnly: true,
  })) {
    sizes.push(rows.length);
  }
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    200,
  );
  assert(Math.max(...sizes) < 20, `${sizes} rows of 100,000 bytes`);
});

/** MariaDB sends four bytes of length before a value of this size. */
const LENGTH_BYTES = 4;

test('a row of the largest size is returned, and one with a byte more is refused', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const most = 0xffffff - 1 - 2 * LENGTH_BYTES;
  const halves = (bytes: number) => `SELECT REPEAT('x', 8000000), REPEAT('y', ${bytes - 8_000_000})`;
  const { rows } = await ask(await fixture.open(mariadbConnection()), halves(most));
  assert.deepEqual(
    rows.map((row) => row.map((cell) => String(cell).length)),
    [[8_000_000, most - 8_000_000]],
  );
  await assert.rejects(ask(await fixture.open(mariadbConnection()), halves(most + 1)), {
    category: 'row_too_large',
    message: FAILURES.row_too_large,
  });
});

test('several statements in one query are refused', { skip }, async (t) => {
  const session = await probeFixture(t).open(mariadbConnection());
  await assert.rejects(ask(session, 'SELECT 1; SELECT 2'), { category: 'query' });
});

test('a procedure with several results is refused, and one with a single result is not', {
  skip,
}, async (t) => {
  const fixture = probeFixture(t);
  const owner = await fixture.open(mariadbConnection());
  const run = (sql: string) => ask(owner, sql, { readOnly: false });
  await run('CREATE OR REPLACE PROCEDURE troupe_one() SELECT 1 AS a, 2 AS b');
  await run("CREATE OR REPLACE PROCEDURE troupe_two() BEGIN SELECT 1 AS a, 2 AS b; SELECT 'x' AS c; END");
  assert.deepEqual((await run('CALL troupe_one()')).rows, [[1, 2]]);
  await assert.rejects(
    ask(await fixture.open(mariadbConnection()), 'CALL troupe_two()', { readOnly: false }),
    {
      category: 'query',
      detail: 'Statements with several results are not supported.',
    },
  );
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

test('a connection that is lost between rows ends the statement', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const [session, other] = [await fixture.open(mariadbConnection()), await fixture.open(mariadbConnection())];
  const [[id] = []] = (await ask(session, 'SELECT CONNECTION_ID()')).rows;
  const signal = new AbortController().signal;
  const sql = "SELECT REPEAT('x', 100000) FROM seq_1_to_10000";
  const reading = async () => {
    for await (const _ of session.query(sql, [], { signal, readOnly: true })) {
      await ask(other, `KILL ${id}`, { readOnly: false }).catch(() => {}); // the second time there is no statement to kill
    }
  };
  await assert.rejects(reading(), { name: 'DatasourceFailure' });
});
