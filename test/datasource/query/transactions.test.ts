import assert from 'node:assert/strict';
import { test } from 'node:test';
import { controlsTransaction } from '#src/datasource/query/statements.ts';

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
