import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onlyReads } from '#src/datasource/query/read-only.ts';

for (const sql of [
  'SELECT 1',
  '-- what sells /* best */\r\n/* by month,\n * and year */ (select 1)',
  'WITH a AS (SELECT 1) SELECT * FROM a -- and a comment\rthat goes on',
  "SHOW TABLES LIKE 'a'",
  'explain select 1',
]) {
  test(`${JSON.stringify(sql)} only reads`, () => assert.equal(onlyReads(sql), true));
}

for (const [sql, why] of [
  ['/* /* */ SELECT */ DROP TABLE a', 'comments nest in Databricks and SQL Server'],
  ['-- a\rDROP TABLE a /*\nSELECT */', 'a carriage return ends a comment in Trino and Databricks'],
  ['-- \\\nSELECT\nDROP TABLE a', 'a comment of Databricks goes on behind a backslash'],
  ['WITH p AS PROCEDURE () RETURNS INT AS $$ BEGIN DROP TABLE a; END $$ CALL p()', 'it calls a procedure'],
  ['WITH a AS (SELECT 1) DELETE FROM b', 'it deletes'],
  ['EXPLAIN ANALYZE INSERT INTO a SELECT 1', 'the plan is carried out'],
  ['// a\nSELECT 1', 'not every database has such comments'],
  ['WITH a AS (SELECT 1) ınsert INTO b SELECT 1', 'Spark reads ı as I'],
  ['DROP TABLE a', 'it drops a table'],
  ['', 'it is empty'],
] as const) {
  test(`${JSON.stringify(sql)} counts as a possible write: ${why}`, () =>
    assert.equal(onlyReads(sql), false));
}
