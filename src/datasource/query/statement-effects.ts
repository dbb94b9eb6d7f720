/** What a statement does beside what it answers, as far as its words tell. */
import { statementStart } from './statement-start.ts';

const LEAVES_NOTHING = new Set(
  (
    'SELECT WITH VALUES TABLE SHOW DESC DESCRIBE EXISTS EXPLAIN FROM SUMMARIZE ' +
    'INSERT UPDATE DELETE MERGE REPLACE UPSERT TRUNCATE ANALYZE'
  ).split(' '),
);

/** Functions whose effect stays with the connection: settings of PostgreSQL, locks that only its end gives back. */
const KEEPING = /\b(set_config|pg_(try_)?advisory_lock(_shared)?|get_lock)\s*\(/i;

/**
 * Whether the connection may be another one afterwards, for whoever has it next: with settings, locks, temporary tables,
 * another user or database.
 */
export function changesConnection(kind: string, sql: string): boolean {
  // Its batches may begin with anything.
  if (kind === 'mssql' && /\b(TRAN|TRANSACTION|USE)\b/i.test(sql)) return true;
  return KEEPING.test(sql) || !LEAVES_NOTHING.has(statementStart(sql).word);
}

const TRANSACTION = new Set('START COMMIT ROLLBACK ABORT END SAVEPOINT RELEASE'.split(' '));
/** They run several statements as one, which may well be a transaction. */
const TAKE_BATCHES = new Set(['mssql', 'bigquery', 'snowflake', 'databricks']);

/** Whether the statement is about a transaction over several, which there is none of: each has a connection of its own. */
export function controlsTransaction(kind: string, sql: string): boolean {
  if (TAKE_BATCHES.has(kind)) return false;
  const { word, rest } = statementStart(sql);
  // MariaDB has blocks, which are one statement.
  return TRANSACTION.has(word) || (word === 'BEGIN' && statementStart(rest).word !== 'NOT');
}
