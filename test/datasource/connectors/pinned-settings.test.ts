/**
 * Settings of a server or a role that change the form of values, or whether a write is kept: a session does not depend on them.
 * The expected values are those of psycopg and PyMySQL on the same server.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { connectorOf } from '#src/datasource/connectors/connection-schema.ts';
import type { DatabaseLink } from '#src/datasource/connectors/link.ts';
import { placeParameters } from '#src/datasource/query/placeholders.ts';
import type { RowValue } from '#src/datasource/rows.ts';
import { mariadbServer, postgresServer } from '#test/support/stand-ins/databases.ts';
import { mariadbConnection, postgresConnection, redshiftConnection } from '../connections.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

const POSTGRES_SETTINGS: Readonly<Record<string, string>> = {
  bytea_output: 'escape',
  extra_float_digits: '-10',
  intervalstyle: 'iso_8601',
  datestyle: "'German, DMY'",
  standard_conforming_strings: 'off',
  client_encoding: 'latin1',
};
const POSTGRES_VALUES: readonly (readonly [sql: string, value: RowValue])[] = [
  ["decode('00ff5c41', 'hex')", new Uint8Array([0, 255, 92, 65])],
  ["'\\x5c'::bytea || '\\x00'::bytea", new Uint8Array([92, 0])],
  ["''::bytea", new Uint8Array()],
  ['1::float8 / 3', 1 / 3],
  ['0.1::float8 + 0.2::float8', 0.1 + 0.2],
  ['1e22::float8 / 3', 1e22 / 3],
  ["interval '1 year 2 days 03:04'", '1 year 2 days 03:04:00'],
  ["interval '-1 day'", '-1 days'],
  ["date '2026-02-01'", '2026-02-01'],
  ["timestamp '2026-02-01 03:04:05.5'", '2026-02-01 03:04:05.5'],
  ["'a\\nb'", 'a\\nb'],
  ["'€'", '€'],
];

/** Runs `work` with the name of a new user of PostgreSQL, which is dropped afterwards. */
async function withRole(
  owner: DatabaseLink,
  settings: typeof POSTGRES_SETTINGS,
  work: (role: string) => Promise<void>,
) {
  const role = `troupe_pinned_${randomBytes(5).toString('hex')}`;
  const run = (sql: string) => ask(owner, sql, { readOnly: false });
  await run(`CREATE ROLE ${role} LOGIN PASSWORD '${postgresServer.password || 'unused'}'`);
  try {
    for (const [name, value] of Object.entries(settings))
      await run(`ALTER ROLE ${role} SET ${name} TO ${value}`);
    await work(role);
  } finally {
    await run(`DROP ROLE ${role}`);
  }
}

test('settings of a role in PostgreSQL change no value in results, even after a reset', {
  skip: postgresServer.skip,
}, async (t) => {
  const { open } = probeFixture(t);
  await withRole(await open(postgresConnection()), POSTGRES_SETTINGS, async (user) => {
    const session = await open(postgresConnection({ user }));
    for (const isReset of [false, true]) {
      if (isReset) await session.reset?.();
      for (const [sql, value] of POSTGRES_VALUES)
        assert.deepEqual((await ask(session, `SELECT ${sql}`)).rows, [[value]], sql);
    }
  });
});

test('settings of a role in Redshift change no value in results', {
  skip: postgresServer.skip,
}, async (t) => {
  const { open } = probeFixture(t);
  const { extra_float_digits = '', datestyle = '' } = POSTGRES_SETTINGS;
  await withRole(await open(postgresConnection()), { extra_float_digits, datestyle }, async (user) => {
    const session = await open(redshiftConnection({ user }));
    const { rows } = await ask(session, "SELECT 1::float8 / 3, date '2026-02-01'");
    assert.deepEqual(rows, [[1 / 3, '2026-02-01']]);
  });
});

const ONLY_FOR_ITS_USERS = (settings: Readonly<Record<string, string>>) =>
  `SET ${Object.entries(settings)
    .map(([name, value]) => `${name} = IF(USER() LIKE 'troupe\\_pinned%', ${value}, @@${name})`)
    .join(', ')}`;
const INIT_CONNECT = ONLY_FOR_ITS_USERS({
  autocommit: '0',
  completion_type: "'RELEASE'",
  character_set_client: "'latin1'",
  character_set_results: "'latin1'",
  sql_mode: "CONCAT(@@sql_mode, ',PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES')",
});

/** Asks for texts with backslashes and for a parameter, whose place is found as the server finds it for a notebook. */
async function askEscaped(session: DatabaseLink, value: string) {
  const { syntax, placeholder } = connectorOf('mariadb');
  const { sql, count } = placeParameters(syntax, "SELECT 'it\\'s ?', 'back\\\\', ?", (at) =>
    placeholder(at, value),
  );
  assert.equal(count, 1);
  return (await ask(session, sql, { parameters: [value] })).rows;
}

test('settings of a MariaDB server change no value in results, and every write is kept', {
  skip: mariadbServer.skip,
}, async (t) => {
  const { open } = probeFixture(t);
  const owner = await open(mariadbConnection());
  const run = (sql: string) => ask(owner, sql, { readOnly: false });
  const name = `troupe_pinned_${randomBytes(5).toString('hex')}`;
  const [[before] = []] = (await run('SELECT @@init_connect')).rows;
  await run(`CREATE TABLE ${name} (c CHAR(5) CHARACTER SET utf8mb4)`);
  await run(`CREATE USER ${name}@'%' IDENTIFIED BY '${name}'`);
  await run(`GRANT SELECT, INSERT ON ${mariadbServer.database}.${name} TO ${name}@'%'`);
  // Only connections of users with such a name notice this setting.
  await run(`SET GLOBAL init_connect = ${JSON.stringify(INIT_CONNECT)}`);
  try {
    const session = await open(mariadbConnection({ user: name, password: name }));
    for (const value of ['ab', '€']) {
      await ask(session, `INSERT INTO ${name} VALUES ('${value}')`, { readOnly: false });
      assert.deepEqual((await ask(session, `SELECT c FROM ${name} WHERE c = '${value}'`)).rows, [[value]]);
      assert.deepEqual(await askEscaped(session, value), [["it's ?", 'back\\', value]]);
      await session.reset?.();
      assert.deepEqual((await ask(session, `SELECT c FROM ${name} WHERE c = '${value}'`)).rows, [[value]]);
      assert.deepEqual(await askEscaped(session, value), [["it's ?", 'back\\', value]]);
    }
    await session.close();
    assert.deepEqual((await run(`SELECT c FROM ${name}`)).rows, [['ab'], ['€']]);
  } finally {
    await run(`SET GLOBAL init_connect = ${JSON.stringify(String(before))}`);
    await run(`DROP USER ${name}@'%'`);
    await run(`DROP TABLE ${name}`);
  }
});
