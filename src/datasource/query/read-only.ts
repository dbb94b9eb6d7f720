/**
 * Statements of agents for databases that have no read-only mode. Only their words show whether they write, so when in
 * doubt they are refused. The effects of functions in a statement are unknown: the account's rights limit them.
 */
import { isReading, statementStart } from './statements.ts';

/**
 * Blanks and comments that all databases read in the same way. They read other comments differently: some
 * databases nest comments, end them at a carriage return, or continue them after a backslash at the
 * end of a line. So one database may execute text that is a comment to another.
 */
const PLAIN_START = /^(?:[ \t\n;(]|\r\n|--[^\r\n\\]*\r?\n|\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\/)*$/;

/**
 * Returns whether the statement only reads, in every database. `alsoWrites` recognises further writing statements of a
 * dialect.
 */
export function onlyReads(sql: string, alsoWrites: (sql: string) => boolean = () => false): boolean {
  const { word, rest } = statementStart(sql);
  const start = sql.slice(0, sql.length - rest.length - word.length);
  return isReading(sql) && PLAIN_START.test(start) && !alsoWrites(sql);
}
