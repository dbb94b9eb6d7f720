import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changesConnection, controlsTransaction } from '#src/datasource/query/statement-effects.ts';

for (const sql of [
  'select 1',
  '(select 1)',
  '-- a\nwith a as (select 1) select 1',
  'INSERT INTO a VALUES (1)',
  'explain select 1',
]) {
  test(`the connection can be reused after ${JSON.stringify(sql)}`, () => {
    assert.equal(changesConnection('postgres', sql), false);
  });
}

for (const sql of [
  'set role x',
  'USE other',
  'create temp table a (b int)',
  'LOCK TABLES a READ',
  'call f()',
  'pragma x',
  "select set_config('role', 'x', false)",
  'SELECT pg_try_advisory_lock (1)',
  "select get_lock('a', 1)",
  '',
]) {
  test(`the connection may have changed after ${JSON.stringify(sql)}`, () => {
    assert.equal(changesConnection('postgres', sql), true);
  });
}

test('a batch of SQL Server that begins with a SELECT may leave a transaction open', () => {
  assert.equal(changesConnection('mssql', 'SELECT 1 BEGIN TRAN'), true);
  assert.equal(changesConnection('mssql', 'SELECT 1'), false);
});

for (const [kind, sql, is] of [
  ['postgres', 'BEGIN', true],
  ['sqlite', 'begin immediate', true],
  ['mariadb', 'START TRANSACTION', true],
  ['duckdb', '/* a */ commit', true],
  ['mysql', 'rollback to savepoint a', true],
  ['mariadb', 'BEGIN NOT ATOMIC SELECT 1; END', false],
  ['mssql', 'BEGIN TRANSACTION; UPDATE a SET b = 1; COMMIT', false],
  ['bigquery', 'BEGIN SELECT 1; END', false],
  ['postgres', 'select commit from a', false],
] as const) {
  test(`${kind}: ${sql} ${is ? 'controls' : 'does not control'} a transaction`, () => {
    assert.equal(controlsTransaction(kind, sql), is);
  });
}
