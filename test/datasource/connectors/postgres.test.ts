/** Runs against a real PostgreSQL, also as `redshift`, which speaks the same protocol. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { TLSSocket } from 'node:tls';
import { FAILURES } from '#src/datasource/failure.ts';
import { ROW_LIMIT_BYTES } from '#src/datasource/rows.ts';
import { postgresServer as server } from '#test/support/stand-ins/databases.ts';
import { TEST_CERTIFICATE, TEST_KEY } from '#test/support/stand-ins/test-certificate.ts';
import { postgresConnection, redshiftConnection } from '../connections.ts';
import { listeningWith, type Owner } from '../listening.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

const { skip } = server;
const WORKS = { ok: true, message: 'The connection works.' };

const PROBES: Readonly<
  Record<string, readonly [connection: object, result: { ok: boolean; message: string }]>
> = {
  'a postgres connection works': [postgresConnection(), WORKS],
  'a redshift connection works': [redshiftConnection(), WORKS],
  'a connection works without TLS if it disables TLS': [
    postgresConnection({ query: '?sslmode=disable' }),
    WORKS,
  ],
  'a missing database is reported': [
    postgresConnection({ database: 'no_such' }),
    { ok: false, message: FAILURES.database_missing },
  ],
  'a missing schema is reported': [
    postgresConnection({ schema: 'no "such" \'schema' }),
    { ok: false, message: FAILURES.database_missing },
  ],
  'an unknown user is rejected': [
    postgresConnection({ user: 'no_such_user' }),
    { ok: false, message: FAILURES.authentication },
  ],
  'TLS that the server lacks is not given up': [
    postgresConnection({ query: '?sslmode=require' }),
    { ok: false, message: FAILURES.tls },
  ],
  'a connection that needs verified TLS fails if the server has no TLS': [
    redshiftConnection({ tls: 'verify-full' }),
    { ok: false, message: FAILURES.tls },
  ],
};

for (const [sentence, [connection, result]] of Object.entries(PROBES)) {
  test(sentence, { skip }, async (t) => {
    assert.deepEqual(await probeFixture(t).probe(connection), result);
  });
}

test('values of every common type are returned unchanged', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  const sql = `SELECT true AS b, 1::int2 AS i, 9007199254740993 AS l, 1.5::float8 AS f, 'NaN'::float8 AS n, 1.10::numeric AS d,
    'é' AS t, '\\x00ff'::bytea AS y, date '2024-02-29' AS a, time '12:00' AS m, timestamp '2024-01-02 03:04:05.678901' AS s,
    '{"k": 1}'::jsonb AS j, '5b4d2f8e-0b2a-4f0e-9a55-1c1f5b0a7d3e'::uuid AS u, null::int AS z, '{1,2}'::int[] AS r`;
  assert.deepEqual(await ask(session, sql), {
    columns: [
      { name: 'b', type: 'boolean' },
      { name: 'i', type: 'integer' },
      { name: 'l', type: 'integer' },
      { name: 'f', type: 'float' },
      { name: 'n', type: 'float' },
      { name: 'd', type: 'decimal' },
      { name: 't', type: 'text' },
      { name: 'y', type: 'bytes' },
      { name: 'a', type: 'date' },
      { name: 'm', type: 'time' },
      { name: 's', type: 'timestamp' },
      { name: 'j', type: 'json' },
      { name: 'u', type: 'uuid' },
      { name: 'z', type: 'integer' },
      { name: 'r', type: 'other' },
    ],
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
  });
});

test('parameters are sent separately from the statement', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  const parameters = ["'; DROP TABLE x --", 5n, 7n, true, null, new Uint8Array([1, 0])];
  const sql = 'SELECT $1::text, $2::int, $3::bigint, $4::bool, $5::text, $6::bytea';
  assert.deepEqual((await ask(session, sql, { parameters })).rows, [
    [parameters[0], 5, 7, true, null, parameters[5]],
  ]);
});

test('names without a schema are looked up in the schema of the connection', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection({ schema: 'information_schema' }));
  assert.deepEqual((await ask(session, 'SELECT count(*) FROM sql_features WHERE false')).rows, [[0]]);
});

test('many rows come in batches, and never more than requested', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  const sql = 'SELECT i FROM generate_series(1, 100000) AS i';
  const all = await ask(session, sql);
  assert.deepEqual([all.rows.length, all.rows.at(-1)], [100_000, [100_000]]);
  assert.equal((await ask(session, sql, { maxRows: 300 })).rows.length, 300);
  assert.deepEqual((await ask(session, 'SELECT 1 AS one')).rows, [[1]]);
});

test('a SELECT without rows still has columns, and a statement that returns nothing has none', {
  skip,
}, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  assert.deepEqual(await ask(session, 'SELECT 1 AS one WHERE false'), {
    columns: [{ name: 'one', type: 'integer' }],
    rows: [],
  });
  assert.deepEqual(await ask(session, 'SET application_name TO x', { readOnly: false }), {
    columns: [],
    rows: [],
  });
});

for (const sql of [
  'CREATE TABLE troupe_x (a int)',
  'SELECT 1; DROP TABLE troupe_x',
  'DELETE FROM pg_class',
]) {
  test(`in read-only mode the server refuses ${sql}`, { skip }, async (t) => {
    const session = await probeFixture(t).open(postgresConnection());
    await assert.rejects(ask(session, sql), { category: 'query' });
    assert.deepEqual((await ask(session, 'SELECT 1 AS one')).rows, [[1]]);
  });
}

test("the server's error message for a statement is passed on, without the password", { skip }, async (t) => {
  const connection = postgresConnection();
  const secret = decodeURIComponent(new URL(connection.connection_string).password);
  const session = await probeFixture(t).open(connection);
  await assert.rejects(ask(session, `SELECT "${secret}"`), {
    name: 'DatasourceFailure',
    category: 'query',
    message: FAILURES.query,
    detail: 'column "[secret]" does not exist',
  });
});

test('a cancelled query ends in the server, and the session can be used again', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const [session, other] = [
    await fixture.open(postgresConnection()),
    await fixture.open(postgresConnection()),
  ];
  const [[pid] = []] = (await ask(session, 'SELECT pg_backend_pid()')).rows;
  const stop = new AbortController();
  const sleeping = ask(session, 'SELECT pg_sleep(60)', { signal: stop.signal });
  const isSleeping = `SELECT count(*)::int FROM pg_stat_activity WHERE pid = ${pid} AND state = 'active' AND query LIKE '%pg_sleep%'`;
  while ((await ask(other, isSleeping)).rows[0]?.[0] !== 1);
  stop.abort();
  await assert.rejects(sleeping, { category: 'cancelled' });
  assert.deepEqual((await ask(other, isSleeping)).rows, [[0]]);
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});

test('a session that the server ends reports the failure and can be closed', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const [session, other] = [
    await fixture.open(postgresConnection()),
    await fixture.open(postgresConnection()),
  ];
  const [[pid] = []] = (await ask(session, 'SELECT pg_backend_pid()')).rows;
  await ask(other, 'SELECT pg_terminate_backend($1)', { parameters: [Number(pid)], readOnly: false });
  await assert.rejects(ask(session, 'SELECT 1'), (error: Error) => {
    assert.deepEqual([error.name, error.cause], ['DatasourceFailure', undefined]);
    return true;
  });
  await session.close();
});

test('rows are held back while nobody reads them, and all arrive in the end', { skip }, async (t) => {
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

test('a statement that is abandoned early ends, and the session can be used again', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  const signal = new AbortController().signal;
  const sql = "SELECT repeat('x', 100000) FROM generate_series(1, 200)";
  for await (const _ of session.query(sql, [], { signal, readOnly: true })) break;
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});

/** A row has this many bytes in addition to its one value: its length, its number of values and the value's length. */
const ROW_HEAD_BYTES = 11;

test('a row of the largest size is returned, and one with a byte more is refused', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const most = ROW_LIMIT_BYTES - ROW_HEAD_BYTES;
  const { rows } = await ask(await fixture.open(postgresConnection()), `SELECT repeat('x', ${most})`);
  assert.equal(String(rows[0]?.[0]).length, most);
  await assert.rejects(ask(await fixture.open(postgresConnection()), `SELECT 1, repeat('x', ${most + 1})`), {
    category: 'row_too_large',
    message: FAILURES.row_too_large,
  });
});

test('a connection that is lost between rows ends the statement', { skip }, async (t) => {
  const fixture = probeFixture(t);
  const [session, other] = [
    await fixture.open(postgresConnection()),
    await fixture.open(postgresConnection()),
  ];
  const [[pid] = []] = (await ask(session, 'SELECT pg_backend_pid()')).rows;
  const signal = new AbortController().signal;
  const sql = "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)";
  const reading = async () => {
    for await (const _ of session.query(sql, [], { signal, readOnly: true })) {
      await ask(other, 'SELECT pg_terminate_backend($1)', { parameters: [Number(pid)], readOnly: false });
    }
  };
  await assert.rejects(reading(), { name: 'DatasourceFailure' });
});

test('several statements in one query are refused', { skip }, async (t) => {
  const session = await probeFixture(t).open(postgresConnection());
  await assert.rejects(ask(session, 'SELECT 1; SELECT 2'), {
    category: 'query',
    detail: 'cannot insert multiple commands into a prepared statement',
  });
});

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

test('the same rows arrive over TLS', { skip }, async (t) => {
  const port = await overTls(t);
  const connection = postgresConnection({ host: '127.0.0.1', port, query: '?sslmode=require' });
  const session = await probeFixture(t).open(connection);
  const sql = "SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) n";
  const { rows } = await ask(session, sql);
  assert.deepEqual([rows.length, rows.at(-1)], [5000, [5000, 'x'.repeat(1000)]]);
  assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
});
