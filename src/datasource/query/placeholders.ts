/**
 * Finds the placeholders of a statement. Databases differ in the marks that begin and end quoted text and comments,
 * so each connector has a syntax of this module. If this module and the database disagreed about one placeholder,
 * values would be bound to the wrong places.
 */

/** The parts of a database's syntax in which `?` is not a placeholder. */
export interface SqlSyntax {
  /** The characters that quote text or names. Inside of them, the doubled character is the character itself. */
  readonly quotes: string;
  /** The quotes in which a backslash protects the next character. */
  readonly escaping?: string;
  /** Set if `E'…'` has backslashes, as in PostgreSQL. Then `'` itself has none. */
  readonly hasEscapeStrings?: true;
  /** Set if `r'…'` and `r"…"` have no backslashes. */
  readonly hasRawStrings?: true;
  /** Set if three quotes begin a text that only three quotes end. */
  readonly hasTripleQuotes?: true;
  /** Whether `[…]` quotes names, and whether `]]` is a bracket inside of them. */
  readonly brackets?: 'plain' | 'doubled';
  /** Whether `$$…$$` quotes text, and whether there may be a tag between the dollars. */
  readonly dollars?: 'plain' | 'tagged';
  /** The beginnings of comments that the end of the line ends, as a regular expression. */
  readonly lineComment: string;
  /** Set if a carriage return, too, ends such a comment. */
  readonly endsLineAtReturn?: true;
  /** Set if comments nest in one another. */
  readonly nests?: true;
  /** Set if the database executes the text inside of comments that begin with `/*!`. */
  readonly executesComments?: true;
}

/** https://www.postgresql.org/docs/current/sql-syntax-lexical.html; DuckDB has the lexer of PostgreSQL. */
export const POSTGRES_SYNTAX: SqlSyntax = {
  quotes: `'"`,
  hasEscapeStrings: true,
  dollars: 'tagged',
  lineComment: '--',
  endsLineAtReturn: true,
  nests: true,
};
/** Redshift has the syntax of PostgreSQL 8, in which a backslash escapes in every text. */
export const REDSHIFT_SYNTAX: SqlSyntax = { ...POSTGRES_SYNTAX, escaping: "'" };
/** https://dev.mysql.com/doc/refman/8.4/en/comments.html and string-literals.html. Connections are without NO_BACKSLASH_ESCAPES. */
export const MYSQL_SYNTAX: SqlSyntax = {
  quotes: `'"\``,
  escaping: `'"`,
  lineComment: String.raw`#|--(?=[\s\0-\x1f]|$)`,
  executesComments: true,
};
/** https://www.sqlite.org/lang_keywords.html and lang_comment.html */
export const SQLITE_SYNTAX: SqlSyntax = { quotes: `'"\``, brackets: 'plain', lineComment: '--' };
/** https://learn.microsoft.com/sql/relational-databases/databases/database-identifiers */
export const MSSQL_SYNTAX: SqlSyntax = {
  quotes: `'"`,
  brackets: 'doubled',
  lineComment: '--',
  nests: true,
};
/** https://docs.snowflake.com/en/sql-reference/data-types-text */
export const SNOWFLAKE_SYNTAX: SqlSyntax = {
  quotes: `'"`,
  escaping: "'",
  dollars: 'plain',
  lineComment: '--|//',
};
/**
 * https://cloud.google.com/bigquery/docs/reference/standard-sql/lexical. In a raw string a backslash keeps the next quote from ending
 * the string, as in other strings.
 */
export const BIGQUERY_SYNTAX: SqlSyntax = {
  quotes: `'"\``,
  escaping: `'"\``,
  hasTripleQuotes: true,
  lineComment: '#|--',
  endsLineAtReturn: true,
};
/** https://docs.databricks.com/en/sql/language-manual/data-types/string-type.html */
export const DATABRICKS_SYNTAX: SqlSyntax = {
  quotes: `'"\``,
  escaping: `'"`,
  hasRawStrings: true,
  dollars: 'tagged',
  lineComment: '--',
  endsLineAtReturn: true,
  nests: true,
};
/** https://clickhouse.com/docs/sql-reference/syntax */
export const CLICKHOUSE_SYNTAX: SqlSyntax = {
  quotes: `'"\``,
  escaping: `'"\``,
  dollars: 'tagged',
  lineComment: '--|#[ !]',
  nests: true,
};
/** https://trino.io/docs/current/language/types.html and comments.html */
export const TRINO_SYNTAX: SqlSyntax = {
  quotes: `'"\``,
  dollars: 'plain',
  lineComment: '--',
  endsLineAtReturn: true,
};

/** The result of `placeParameters`. */
export interface PlacedParameters {
  readonly sql: string;
  /** The number of placeholders. */
  readonly count: number;
  /** Whether the statement ends inside of a quotation or a comment. */
  readonly isCutOff: boolean;
}

/**
 * Returns `sql` with every `?` outside of quotes and comments replaced, in order. `??` there becomes one `?`, for operators that contain
 * it. Do not call it for a statement without parameters, in which `?` has only the database's own meaning. Takes linear time.
 */
export function placeParameters(
  syntax: SqlSyntax,
  sql: string,
  placeholder: (position: number) => string,
): PlacedParameters {
  const opening = openingOf(syntax);
  let result = '';
  let count = 0;
  let copied = 0;
  opening.lastIndex = 0;
  for (let found = opening.exec(sql); found !== null; found = opening.exec(sql)) {
    const { 0: text, index } = found;
    if (text.startsWith('?')) {
      result += sql.slice(copied, index) + (text === '??' ? '?' : placeholder(++count));
      copied = index + text.length;
      continue;
    }
    const end = endOf(syntax, sql, text, index + text.length);
    if (end < 0) return { sql: result + sql.slice(copied), count, isCutOff: true };
    opening.lastIndex = end;
  }
  return { sql: result + sql.slice(copied), count, isCutOff: false };
}

/**
 * A whole word. It must be skipped as a unit, because it may contain `$`, and may end with an `e`, which could be
 * taken for the beginning of an escape string.
 */
const WORD = String.raw`[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*`;
const TAG = String.raw`(?:[A-Za-z_\x80-\uffff][\w\x80-\uffff]*)?`;

/** The expression of each syntax, made when it is first needed. */
const openings = new Map<SqlSyntax, RegExp>();

/**
 * Returns the expression for the next place that matters: the beginning of a word, a quotation or a comment, or a
 * `?`.
 */
function openingOf(syntax: SqlSyntax): RegExp {
  const known = openings.get(syntax);
  if (known !== undefined) return known;
  const { quotes, hasEscapeStrings, hasRawStrings, hasTripleQuotes, brackets, dollars } = syntax;
  const made = new RegExp(
    [
      hasEscapeStrings && "[eE]'",
      hasRawStrings && `[rR]['"]`,
      WORD,
      hasTripleQuotes && `'''|"""`,
      `[${quotes}]`,
      brackets && String.raw`\[`,
      dollars && (dollars === 'plain' ? String.raw`\$\$` : String.raw`\$${TAG}\$`),
      syntax.executesComments ? String.raw`\/\*(?!M?!)` : String.raw`\/\*`,
      syntax.lineComment,
      String.raw`\?\??`,
    ]
      .filter(Boolean)
      .join('|'),
    'g',
  );
  openings.set(syntax, made);
  return made;
}

const IS_WORD = new RegExp(`^${WORD}`);
const NEWLINE = /\n/g;
const END_OF_LINE = /[\r\n]/g;
const COMMENT_MARK = /\/\*|\*\//g;
/** The blanks between two parts of one escape string, which the end of a line separates. */
const CONTINUED = /[ \t\f\v]*[\r\n]\s*'/y;

/** Returns the index after the quotation or comment whose opening characters end before `from`; -1 if it does not end. */
function endOf(syntax: SqlSyntax, sql: string, opening: string, from: number): number {
  const quote = opening.at(-1) ?? '';
  if (opening === '/*') return syntax.nests ? endOfNested(sql, from) : after(sql, '*/', from);
  if (opening === '[') return endOfQuoted(sql, ']', from, { doubles: syntax.brackets === 'doubled' });
  if (opening.startsWith('$')) return after(sql, opening, from);
  if (/^['"`]/.test(opening)) {
    const escapes = syntax.escaping?.includes(quote) === true;
    return opening.length === 3
      ? endOfTriple(sql, opening, from)
      : endOfQuoted(sql, quote, from, { doubles: true, escapes });
  }
  if (opening.length === 2 && /^[eE]'/.test(opening)) return endOfEscapeString(sql, from);
  if (opening.length === 2 && /^[rR]['"]/.test(opening)) return after(sql, quote, from);
  if (IS_WORD.test(opening)) return from;
  return endOfLine(sql, from, syntax.endsLineAtReturn === true);
}

/** An escape string may have several parts, with the end of a line between them. All parts are escape strings. */
function endOfEscapeString(sql: string, from: number): number {
  for (let at = from; ; at = CONTINUED.lastIndex) {
    const end = endOfQuoted(sql, "'", at, { doubles: true, escapes: true });
    CONTINUED.lastIndex = end;
    if (end < 0 || !CONTINUED.test(sql)) return end;
  }
}

function endOfLine(sql: string, from: number, atReturn: boolean): number {
  const end = atReturn ? END_OF_LINE : NEWLINE;
  end.lastIndex = from;
  return end.test(sql) ? end.lastIndex : sql.length;
}

function after(sql: string, ending: string, from: number): number {
  const at = sql.indexOf(ending, from);
  return at < 0 ? -1 : at + ending.length;
}

function endOfNested(sql: string, from: number): number {
  COMMENT_MARK.lastIndex = from;
  let depth = 1;
  while (depth > 0) {
    const mark = COMMENT_MARK.exec(sql);
    if (mark === null) return -1;
    depth += mark[0] === '/*' ? 1 : -1;
  }
  return COMMENT_MARK.lastIndex;
}

interface QuoteRules {
  readonly doubles: boolean;
  readonly escapes?: boolean;
}

function endOfQuoted(
  sql: string,
  quote: string,
  from: number,
  { doubles, escapes = false }: QuoteRules,
): number {
  for (let at = from; ; at += 2) {
    at = escapes ? nextOf(sql, quote, at) : sql.indexOf(quote, at);
    if (at < 0) return -1;
    if (sql[at] === quote && !(doubles && sql[at + 1] === quote)) return at + 1;
  }
}

function endOfTriple(sql: string, ending: string, from: number): number {
  for (let at = from; ; at += 1) {
    at = nextOf(sql, ending.charAt(0), at);
    if (at < 0) return -1;
    if (sql[at] === '\\') at += 1;
    else if (sql.startsWith(ending, at)) return at + 3;
  }
}

const MARKS: Readonly<Record<string, RegExp>> = { "'": /['\\]/g, '"': /["\\]/g, '`': /[`\\]/g };

/** Returns the index of the next backslash or `quote`; -1 if there is none. */
function nextOf(sql: string, quote: string, from: number): number {
  const mark = MARKS[quote];
  if (mark === undefined) return sql.indexOf(quote, from);
  mark.lastIndex = from;
  return mark.exec(sql)?.index ?? -1;
}
