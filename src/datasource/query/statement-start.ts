/** Reads how a statement begins, for databases that do not tell otherwise whether a statement writes. */

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

/**
 * Returns whether the statement begins with a word of statements that only return rows. This is required in addition
 * to a read-only transaction, which protects the tables, but not the files, programs and settings of the database
 * server.
 */
export function beginsAsReading(sql: string): boolean {
  return READING.has(statementStart(sql).word);
}

/**
 * Returns whether the statement, by its words, only returns rows. Some dialects write after a `WITH`, or call a
 * procedure that it defines, so a statement with `WITH` and such a word anywhere is rejected.
 */
export function isReading(sql: string): boolean {
  const { word, rest } = statementStart(sql);
  if (word === 'EXPLAIN') return !/\bANALY[SZ]E\b/i.test(rest);
  if (word === 'WITH') return !/\b(INSERT|MERGE|UPDATE|DELETE|PROCEDURE)\b/i.test(rest);
  return READING.has(word);
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
