/** How a statement begins, for databases whose only word on what a statement does is its first one. */

const BLANK = /[\s;(]+|--[^\n]*(?:\n|$)/y;
const WORD = /\w+/y;

/** The first word in capitals, past blanks, comments and brackets; and what follows it. Takes time linear in the text. */
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
 * Whether the statement gives rows and changes nothing, as far as its words tell. Some dialects write after a `WITH`, so
 * the words that would do that are refused there, wherever they stand.
 */
export function isReading(sql: string): boolean {
  const { word, rest } = statementStart(sql);
  if (word === 'EXPLAIN') return !/\bANALY[SZ]E\b/i.test(rest);
  if (word === 'WITH') return !/\b(INSERT|MERGE|UPDATE|DELETE)\b/i.test(rest);
  return READING.has(word);
}

function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}
