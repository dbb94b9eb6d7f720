/** Placeholders of statements, in the syntax of each database. `connectors/` has the same with the databases that run in tests. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { connectorOf } from '#src/datasource/connectors/connection-schema.ts';
import { placeParameters } from '#src/datasource/query/placeholders.ts';

/** Returns the statement with `<n>` in the places of placeholders. */
const placed = (kind: string, sql: string) =>
  placeParameters(connectorOf(kind).syntax, sql, (position) => `<${position}>`).sql;

/** Statements by the kinds that read them so. `¿` stands for a placeholder; no `?` is one. */
const CASES: readonly (readonly [kinds: string, ...statements: string[]])[] = [
  ['postgres mysql mssql sqlite duckdb trino snowflake clickhouse bigquery databricks redshift',
    "¿ = 'it''s ?' and ¿", '¿ -- ?\n ¿', '¿ /* ? */ ¿', '¿ "a?" ¿', "¿, '/* ?', ¿", '-- \'\n ¿ = "/*" and ¿', '(¿,¿)', '¿::int'],
  ['postgres redshift duckdb files clickhouse databricks', '$$?\'$$ ¿ $a$?$$?$a$ ¿ $a$$b$?$a$ ¿', '/* /* ? */ ? */ ¿', 'a$1$ ¿ 1$ ¿'],
  ['postgres duckdb files', "E'\\'?' || ¿ || e'''\\'?\\\\' || ¿", "E'a'\n 'b\\'?' || ¿", "'\\' || ¿", "name' ? ' || ¿", "té'\\' || ¿", "a$$ ¿ b$$"],
  ['postgres duckdb', 'a # ¿ # ¿', '"a""?" = ¿', 'a::text[] || ARRAY[¿, ¿]', '` ¿ `', '-- ?\r ¿'],
  ['redshift snowflake', "'\\'?' || ¿"],
  ['mysql mariadb', "'\\'?' = ¿", '"\\"?" = ¿', '`a``?` = ¿', '¿ # ?\n ¿', '5--¿ - ¿', '-- ?\r ?\n ¿', '¿ --', '¿ --\t?',
    '/*!50000 ¿ */', '/*M! ¿ */ /*+ ? */ ¿', '/* /* ? */ ¿ ', "'\\\\' ¿ '\\\\\\'?'", '`\\` ¿', '$$ ¿ $$'],
  ['mssql', '[a?]]?] = ¿', "'\\' + ¿", '[ ?] = ¿ -- ?', '/* /* ? */ ? */ ¿', '# ¿'],
  ['sqlite', '[a?] = ¿ ]', "'\\' || ¿", '`?` = ¿', '/* /* ? */ ¿', '[a]]¿', '$a$ ¿ $a$'],
  ['snowflake', "'\\\\' || ¿", '$$ ? $$ || ¿', '¿ // ?\n ¿', '`¿`'],
  ['bigquery', '\'\'\'a\'?\\\'\'\'?\'\'\' || ¿', '"""?"\n?""" || ¿', "r'\\'?' || ¿", '¿ # ?\n ¿', '`a\\`?` = ¿', "'' || ¿ || ''"],
  ['databricks', "r'\\' || ¿ || '\\'?'", 'R"\\" || ¿', '`?` = ¿', "for' ? '¿"],
  ['clickhouse', "'\\'?' = ¿", '`\\`?` = ¿', '¿ #! ?\n ¿', '¿ # ?\n ¿', '"\\"?" = ¿'],
  ['trino', "'\\' || ¿", '$$ ? $$ ¿', '/* /* ? */ ¿'],
]; // biome-ignore format: a table

for (const [kinds, ...statements] of CASES)
  for (const kind of kinds.split(' '))
    test(`a question mark in a quotation or a comment of ${kind} is not a placeholder (${statements[0]})`, () => {
      for (const statement of statements) {
        let count = 0;
        const expected = statement.replaceAll('¿', () => `<${++count}>`);
        assert.equal(placed(kind, statement.replaceAll('¿', '?')), expected);
      }
    });

test('`??` becomes one question mark that is not a placeholder, except in quotations and comments', () => {
  assert.equal(
    placed('postgres', `a ?? ? and a ??| ? and a ??& ? and a @?? ? and '??' = ??? -- ??`),
    `a ? <1> and a ?| <2> and a ?& <3> and a @? <4> and '??' = ?<5> -- ??`,
  );
});

test('a statement that ends inside of a quotation or a comment is recognised', () => {
  for (const sql of ["? '?", '? "?', '? /* ?', '? /* /* */ ?', '? $a$ ? $b$', "? E'\\'", "? 'a''"]) {
    const { count, isCutOff } = placeParameters(connectorOf('postgres').syntax, sql, () => '?');
    assert.deepEqual([count, isCutOff], [1, true], sql);
  }
});
