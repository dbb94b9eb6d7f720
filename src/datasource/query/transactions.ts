/** Recognises by their first word the statements that begin or end a transaction. */
import { statementStart } from './statement-start.ts';

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
