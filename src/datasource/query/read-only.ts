/**
 * Statements of agents for databases that have no read-only mode. Only their words say whether they write, so when in doubt they
 * are refused. What functions do that a statement calls is not known: the account's rights limit that.
 */
import { isReading, statementStart } from './statement-start.ts';

/**
 * Blanks and comments that every database reads alike. Some nest comments, end them at a carriage return, or go on behind a
 * backslash at the end of a line: what one takes for a comment is a statement to another.
 */
const PLAIN_START = /^(?:[ \t\n;(]|\r\n|--[^\r\n\\]*\r?\n|\/\*(?:(?!\/\*|\*\/)[\s\S])*\*\/)*$/;

/** Returns whether the statement only reads, whichever database reads it. `alsoWrites` knows what else writes in a dialect. */
export function onlyReads(sql: string, alsoWrites: (sql: string) => boolean = () => false): boolean {
  const { word, rest } = statementStart(sql);
  const start = sql.slice(0, sql.length - rest.length - word.length);
  return isReading(sql) && PLAIN_START.test(start) && !alsoWrites(sql);
}
