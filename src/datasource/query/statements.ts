/** Finds the effect of SQL statements without a database, as far as the server must know it. */
import { mayContain } from './sql-words.ts';

const BLANK = /[\s;(]+|--[^\n]*(?:\n|$)/y;
const WORD = /\w+/y;

/** Returns the first word, in capitals, after blanks, comments and brackets, and the text after it. Takes linear time. */
export function statementStart(sql: string): { readonly word: string; readonly rest: string } {
  let at = 0;
  for (;;) {
    const end = sql.startsWith('/*', at) ? sql.indexOf('*/', at + 2) + 2 : endOf(BLANK, sql, at);
    if (end <= at) break;
    at = end;
  }
  const end = endOf(WORD, sql, at);
  return { word: sql.slice(at, Math.max(at, end)).toUpperCase(), rest: sql.slice(Math.max(at, end)) };
}

const READING = new Set([
  'SELECT',
  'WITH',
  'VALUES',
  'TABLE',
  'SHOW',
  'DESC',
  'DESCRIBE',
  'EXISTS',
  'EXPLAIN',
]);

const CARRIES_OUT = new Set(['ANALYZE', 'ANALYSE']);
const WRITING_WITH = new Set(['INSERT', 'MERGE', 'UPDATE', 'DELETE', 'PROCEDURE']);

/**
 * Returns whether the statement begins with a word of statements that only return rows. This is required in addition
 * to a read-only transaction. Such a transaction protects the tables, but not the files, programs and settings of the
 * database server.
 */
export function beginsAsReading(sql: string): boolean {
  return READING.has(statementStart(sql).word);
}

/**
 * Returns whether the statement, by its words, only returns rows. In some dialects a statement can
 * write after a `WITH`, or call a procedure that the `WITH` defines. So a statement with `WITH` and
 * a writing word anywhere is rejected.
 */
export function isReading(sql: string): boolean {
  const { word, rest } = statementStart(sql);
  if (word === 'EXPLAIN') return !mayContain(rest, CARRIES_OUT);
  if (word === 'WITH') return !mayContain(rest, WRITING_WITH);
  return READING.has(word);
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

const TRANSACTION = new Set('START COMMIT ROLLBACK ABORT END SAVEPOINT RELEASE'.split(' '));
/** These words run several statements as one. The statements may contain a whole transaction. */
const TAKE_BATCHES = new Set(['mssql', 'bigquery', 'snowflake', 'databricks']);

/**
 * Returns whether the statement begins or ends a transaction. Transactions are not possible,
 * because each statement has its own connection.
 */
export function controlsTransaction(kind: string, sql: string): boolean {
  if (TAKE_BATCHES.has(kind)) return false;
  const { word, rest } = statementStart(sql);
  // `BEGIN NOT ATOMIC` opens a block of MariaDB, which is a single statement.
  return TRANSACTION.has(word) || (word === 'BEGIN' && statementStart(rest).word !== 'NOT');
}
