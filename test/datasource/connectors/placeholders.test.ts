/** Placeholders in statements whose operators, quotations and comments have question marks, too, in real databases. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connectorOf } from '#src/datasource/connectors/connection-schema.ts';
import { placeParameters } from '#src/datasource/query/placeholders.ts';
import { mariadbServer, postgresServer } from '#test/support/stand-ins/databases.ts';
import { writeDuckdb, writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { mariadbConnection, postgresConnection } from '../connections.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

interface Case {
  readonly kind: string;
  readonly skip?: string | false;
  readonly connection: (file: string) => object;
  readonly write?: (file: string) => void;
  /** Each statement has one parameter, a text. The value is the row that it must return. */
  readonly statements: Readonly<Record<string, readonly unknown[]>>;
}

const CASES: readonly Case[] = [
  {
    kind: 'postgres',
    skip: postgresServer.skip,
    connection: () => postgresConnection(),
    statements: {
      [`SELECT '{"a": 1}'::jsonb ?? ?, '["a"]'::jsonb ??| ARRAY['a'], '{"a": 1}'::jsonb ??& ARRAY['a', 'b']`]: [true, true, false],
      "SELECT '[1]'::jsonb @?? '$[0]', E'it\\'s ?' || ?, 'back\\'": [true, "it's ?a", 'back\\'],
      "SELECT $x$?$x$ || ?, /* /* ? */ ? */ 5 # 1 -- ?": ['?a', 4],
      "SELECT E'x'\n '\\'?' || ?, U&'\\0041?'": ["x'?a", 'A?'],
    },
  },
  ...['mariadb', 'mysql'].map((kind) => ({
    kind,
    skip: mariadbServer.skip,
    connection: () => mariadbConnection({ kind }),
    statements: {
      "SELECT CONCAT('it\\'s ?', ?), \"a\\\"?\" # ?\n": ["it's ?a", 'a"?'],
      'SELECT ? AS `a``?`, 5--2 -- ?': ['a', 7],
      "SELECT /*! CONCAT(?, '?') */ /* ? */, '\\\\'": ['a?', '\\'],
    },
  })),
  {
    kind: 'sqlite',
    connection: (path) => ({ kind: 'sqlite', path }),
    write: (file) => writeSqlite(file, 'CREATE TABLE t (x)'),
    statements: {
      "SELECT [b?] || ?, `b?`, 'back\\' FROM (SELECT 1 AS [b?]) /* /* ? */ -- ?": ['1a', 1, 'back\\'],
    },
  },
  {
    kind: 'duckdb',
    connection: (path) => ({ kind: 'duckdb', path }),
    write: (file) => writeDuckdb(file, 'CREATE TABLE t (x INTEGER)'),
    statements: {
      "SELECT E'it\\'s ?' || ?, $$'?$$, $x$?$x$, 'back\\'": ["it's ?a", "'?", '?', 'back\\'],
      'SELECT CAST(? AS VARCHAR) /* /* ? */ ? */ AS "b?" -- ?': ['a'],
    },
  },
]; // biome-ignore format: a table

async function answer(t: TestContext, { kind, connection, write }: Case, sql: string) {
  const fixture = probeFixture(t);
  write?.(join(fixture.filesDirectory, 'one.db'));
  const session = await fixture.open(connection('one.db'));
  const { syntax, placeholder } = connectorOf(kind);
  const placed = placeParameters(syntax, sql, (position) => placeholder(position, 'a'));
  assert.equal(placed.count, 1, sql);
  return (await ask(session, placed.sql, { parameters: ['a'], readOnly: false })).rows;
}

for (const one of CASES)
  test(`${one.kind} and the search for placeholders agree on which question marks are not placeholders`, {
    skip: one.skip ?? false,
  }, async (t) => {
    for (const [sql, row] of Object.entries(one.statements))
      assert.deepEqual(await answer(t, one, sql), [row], sql);
  });
