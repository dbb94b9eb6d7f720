/**
 * Reads SQL statements without a database, as far as their effect and their placeholders must be
 * known.
 */
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
 * to a read-only transaction, which protects the tables, but not the files, programs and settings of the database
 * server.
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

/**
 * Where a text begins in which `?` is not a placeholder (quoted text and names, comments, PostgreSQL's dollar quotes), or a `?`. A
 * doubled quote inside of quotes counts as two quoted texts beside each other, which cover the same characters.
 */
const OPENING = /['"`?]|--|\/\*|\$(?:[A-Za-z_]\w*)?\$/g;
/** Every dollar quote, also one whose first dollar ends the one before. */
const DOLLAR_QUOTE = /\$(?=([A-Za-z_]\w*|)\$)/g;

/**
 * Returns `sql` with every `?` outside of quotes and comments replaced, in order, and the number of replacements. Do not
 * call it for a statement without parameters: some databases have operators that contain `?`. Takes linear time.
 */
export function placeParameters(
  sql: string,
  placeholder: (position: number) => string,
): { readonly sql: string; readonly count: number } {
  const endOfText = opaqueTexts(sql);
  let result = '';
  let count = 0;
  let copied = 0;
  OPENING.lastIndex = 0;
  for (let found = OPENING.exec(sql); found !== null; found = OPENING.exec(sql)) {
    const { 0: opening, index } = found;
    if (opening === '?') {
      result += sql.slice(copied, index) + placeholder(++count);
      copied = index + 1;
    } else OPENING.lastIndex = endOfText(opening, index) ?? index + 1;
  }
  return { sql: result + sql.slice(copied), count };
}

/**
 * Returns a function that returns the end of the quoted text or comment that begins at an index; undefined when it has none, and the
 * characters are ordinary. An ending that is missing is looked for once, not again for each beginning.
 */
function opaqueTexts(sql: string): (opening: string, index: number) => number | undefined {
  let lastComment: number | undefined;
  let lastDollars: ReadonlyMap<string, number> | undefined;
  return (opening, index) => {
    const from = index + opening.length;
    if (opening === '--') {
      const end = sql.indexOf('\n', from);
      return end < 0 ? sql.length : end;
    }
    if (opening === '/*') {
      lastComment ??= sql.lastIndexOf('*/');
      return lastComment < from ? undefined : sql.indexOf('*/', from) + 2;
    }
    if (opening.startsWith('$')) {
      lastDollars ??= new Map(
        Array.from(sql.matchAll(DOLLAR_QUOTE), (quote) => [`$${quote[1]}$`, quote.index]),
      );
      return (lastDollars.get(opening) ?? -1) < from
        ? undefined
        : sql.indexOf(opening, from) + opening.length;
    }
    const end = sql.indexOf(opening, from); // without one, this quote is the last of its kind
    return end < 0 ? undefined : end + 1;
  };
}
