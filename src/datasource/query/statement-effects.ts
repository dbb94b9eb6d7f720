/**
 * Judges by the words of a statement what it does to its connection, apart from the rows that it returns. The words
 * prove nothing, because names can be quoted and functions can call other functions. Sessions that can be reset do not
 * rely on them.
 */
import { statementStart } from './statement-start.ts';

const LEAVES_NOTHING = new Set(
  (
    'SELECT WITH VALUES TABLE SHOW DESC DESCRIBE EXISTS EXPLAIN FROM SUMMARIZE ' +
    'INSERT UPDATE DELETE MERGE REPLACE UPSERT TRUNCATE ANALYZE'
  ).split(' '),
);

/** Functions whose effect outlives the statement: settings of PostgreSQL, and locks that only the connection's end frees. */
const KEEPING = /\b(set_config|pg_(try_)?advisory_lock(_shared)?|get_lock)\s*\(/i;

/**
 * Returns whether the statement may leave something on the connection that the next user must not see: settings, locks,
 * temporary tables, another user or another database.
 */
export function changesConnection(kind: string, sql: string): boolean {
  // T-SQL runs several statements at once, so these words can follow anything.
  if (kind === 'mssql' && /\b(TRAN|TRANSACTION|USE)\b/i.test(sql)) return true;
  return KEEPING.test(sql) || !LEAVES_NOTHING.has(statementStart(sql).word);
}

const TRANSACTION = new Set('START COMMIT ROLLBACK ABORT END SAVEPOINT RELEASE'.split(' '));
/** They run several statements as one, which may contain a whole transaction. */
const TAKE_BATCHES = new Set(['mssql', 'bigquery', 'snowflake', 'databricks']);

/** Returns whether the statement begins or ends a transaction, which is impossible: each has its own connection. */
export function controlsTransaction(kind: string, sql: string): boolean {
  if (TAKE_BATCHES.has(kind)) return false;
  const { word, rest } = statementStart(sql);
  // `BEGIN NOT ATOMIC` opens a block of MariaDB, which is a single statement.
  return TRANSACTION.has(word) || (word === 'BEGIN' && statementStart(rest).word !== 'NOT');
}
