import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayRunReadOnly } from '#src/datasource/connectors/mssql/statements.ts';
import { mayContain } from '#src/datasource/query/sql-words.ts';
import { assertLinear } from '#test/support/growth.ts';

for (const sql of [
  ...['SELECT 1DELETE FROM orders', 'SELECT 1INTO t FROM orders', 'SELECT .5DELETE FROM orders'],
  ...['SELECT 1.5DELETE FROM orders', 'SELECT 1.DELETE FROM orders', 'SELECT 1e0DELETE FROM orders'],
  ...['SELECT 1eDELETE FROM orders', 'SELECT 1.e5DELETE FROM orders', 'SELECT 1.e-5DELETE FROM orders'],
  ...['SELECT 0x1DELETE FROM orders', 'SELECT 0x1fupdate orders SET a = 1', 'SELECT $1DELETE FROM orders'],
  ...['SELECT $DELETE FROM orders', 'SELECT £2.5DELETE FROM orders', "SELECT N'a'DELETE FROM orders"],
  ...["SELECT 'it''s'DELETE FROM orders", 'SELECT "a"DELETE FROM orders', 'SELECT [a]DELETE FROM orders'],
  ...['SELECT 1/**/DELETE FROM orders', 'SELECT 1--\rDELETE FROM orders', 'SELECT 1\u00a0DELETE FROM orders'],
  ...['SELECT ①DELETE FROM orders', 'SELECT 1 ＤＥＬＥＴＥ FROM orders', 'SELECT 1TRUNCATE TABLE orders'],
  ...['SELECT 1EXEC sp_who', 'SELECT 1NEXT VALUE FOR numbers', 'SELECT NEXT VALUE FOR[numbers]'],
  ...["SELECT 1BEGIN DIALOG @h FROM SERVICE a TO SERVICE 'b'", 'DESCRIBE orders', 'SHOW 1', 'VALUES (1)'],
]) {
  test(`an agent's ${JSON.stringify(sql)} is not sent to SQL Server`, () =>
    assert.equal(mayRunReadOnly(sql), false));
}

for (const sql of [
  'SELECT t1.last_update, 2 AS a1b2, 0x1F, 1.5e10, $2.5 FROM t1',
  'SELECT updated, deleted_at, created, settings FROM orders',
  'SELECT 2024settings, 1.e5deleted FROM "Größe" WHERE a = N\'é\'',
  'WITH a AS (SELECT 1 AS one) SELECT one FROM a ORDER BY one',
  'SELECT next_value, value FROM forecasts',
]) {
  test(`an agent's ${JSON.stringify(sql)} is sent to SQL Server`, () =>
    assert.equal(mayRunReadOnly(sql), true));
}

test('the time to search a long list of numbers and words grows in proportion to its length', () => {
  const words = new Set(['DELETE', 'UPDATE']);
  for (const text of ['1,', '1a', '1.', 'ſ'])
    assertLinear(text, 500_000, (count) => assert.equal(mayContain(text.repeat(count), words), false));
});
