/** State that a statement leaves on a pooled connection, with a real PostgreSQL and a real MariaDB. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { DatabaseLink } from '#src/datasource/connectors/link.ts';
import { LinkPool } from '#src/datasource/query/link-pool.ts';
import { mariadbServer, postgresServer } from '#test/support/stand-ins/databases.ts';
import { mariadbConnection, postgresConnection, redshiftConnection } from './connections.ts';
import { RECORD } from './datasource-record.ts';
import type { Owner } from './listening.ts';
import { type Asked, ask, probeFixture } from './probe-fixture.ts';

/** Returns a function that runs a statement on the pool's connection and gives the connection back. */
function pooled(owner: Owner, connection: object, opened: (session: DatabaseLink) => void = () => {}) {
  const { open } = probeFixture(owner);
  const pool = new LinkPool(async () => {
    const session = await open(connection);
    opened(session);
    return session;
  });
  owner.after(() => pool[Symbol.asyncDispose]());
  return async (sql: string, options: Asked = {}) => {
    const lease = await pool.acquire('ws_1' as WorkspaceId, RECORD, new AbortController().signal);
    try {
      return (await ask(lease.link, sql, { readOnly: false, ...options })).rows;
    } finally {
      lease.release(true);
    }
  };
}

const LOCKED = "SELECT count(*)::int FROM pg_locks WHERE locktype = 'advisory' AND objid = 424242";

const DATABASES = [
  {
    name: 'PostgreSQL',
    skip: postgresServer.skip,
    connection: postgresConnection({ schema: 'information_schema' }),
    ownId: 'SELECT pg_backend_pid()',
    kill: 'SELECT pg_terminate_backend($1)',
    changes: [
      ['a temporary table', "SELECT 'a' AS a INTO TEMP troupe_left", "SELECT to_regclass('troupe_left')"],
      [
        'a setting',
        `SELECT pg_catalog."set_config"('search_path', 'pg_catalog', false)`,
        "SELECT current_setting('search_path')",
      ],
      ['a date style', 'SET datestyle TO German', "SELECT current_setting('datestyle')"],
      ['a lock', 'SELECT pg_catalog."pg_advisory_lock"(424242)', LOCKED],
      [
        'a prepared statement',
        'PREPARE troupe_left AS SELECT 1',
        'SELECT count(*)::int FROM pg_prepared_statements',
      ],
    ],
  },
  {
    name: 'MariaDB',
    skip: mariadbServer.skip,
    connection: mariadbConnection(),
    ownId: 'SELECT CONNECTION_ID()',
    kill: 'KILL ?',
    changes: [
      ['a variable', "SELECT @troupe_left := 'a'", 'SELECT @troupe_left'],
      ['a lock', "SELECT `get_lock`('troupe-left', 0)", "SELECT is_used_lock('troupe-left')"],
      ['a temporary table', 'CREATE TEMPORARY TABLE troupe_left (a int)', "SHOW TABLES LIKE 'troupe_left'"],
      ['the database', 'USE information_schema', 'SELECT DATABASE()'],
      ['a mode', "SET sql_mode = 'ANSI_QUOTES'", 'SELECT @@sql_mode'],
      ['a character set', 'SET NAMES latin1', 'SELECT @@character_set_client, @@collation_connection'],
    ],
  },
] as const;

for (const { name, skip, connection, ownId, kill, changes } of DATABASES) {
  for (const [what, change, look] of changes) {
    test(`on ${name} ${what} is gone before the next statement gets the connection`, { skip }, async (t) => {
      const run = pooled(t, connection);
      const [id, before] = [await run(ownId), await run(look)];
      await run(change);
      assert.deepEqual([await run(look), await run(ownId)], [before, id]);
    });
  }

  test(`an idle connection that ${name} has closed is not used again`, { skip }, async (t) => {
    const sessions: DatabaseLink[] = [];
    const run = pooled(t, connection, (session) => sessions.push(session));
    const [[first] = []] = await run(ownId);
    const other = await probeFixture(t).open(connection);
    await ask(other, kill, { parameters: [Number(first)], readOnly: false });
    await sessions[0]?.lost;
    const [[second] = []] = await run(ownId);
    assert.notEqual(second, first);
  });
}

for (const [what, change, look, before] of [
  ['a temporary table', "SELECT 'forged' AS a INTO TEMP tables", 'SELECT count(a) FROM tables', undefined],
  [
    'a setting',
    `SELECT pg_catalog."set_config"('search_path', 'forged', false)`,
    "SELECT current_setting('search_path') <> 'forged'",
    [[true]],
  ],
] as const) {
  test(`where nothing can be reset, as on Redshift, ${what} does not reach the next statement`, {
    skip: postgresServer.skip,
  }, async (t) => {
    const run = pooled(t, redshiftConnection({ schema: 'information_schema' }));
    await run(change);
    if (before === undefined) await assert.rejects(run(look), { category: 'query' });
    else assert.deepEqual(await run(look), before);
  });
}

test('on MariaDB a statement with parameters can be sent again after the reset', {
  skip: mariadbServer.skip,
}, async (t) => {
  const run = pooled(t, mariadbConnection());
  for (const value of ['a', 'b']) {
    assert.deepEqual(await run('SELECT ?', { parameters: [value] }), [[value]]);
  }
});
