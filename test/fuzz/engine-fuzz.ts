/** Random hostile databases and statements. The caller chooses how the statements are sent. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_FILES, DUCKDB, SQLITE } from '#test/escape/sql-statements.ts';
import type { SeededRandom } from '#test/support/random.ts';
import { writeDuckdb, writeSqlite } from '#test/support/stand-ins/python-databases.ts';

/** A database in the folder of the workspace's files. */
export interface FuzzedDatabase {
  readonly kind: 'sqlite' | 'duckdb' | 'files';
  readonly path: string;
}

/** The outcome of a statement. */
export interface Outcome {
  /** `rows`, or the category of the failure. */
  readonly kind: string;
  /** The rows, or the message of the failure. */
  readonly text: string;
}

/**
 * Runs one statement on a database. Rejects only when something happens that no statement may
 * cause.
 */
export type AskStatement = (database: FuzzedDatabase, sql: string, readOnly: boolean) => Promise<Outcome>;

export interface FuzzOptions {
  /** The folder of the workspace's files. */
  readonly folder: string;
  /** A file that no statement may read or write. Its content is `CANARY`. */
  readonly canary: string;
  readonly random: SeededRandom;
  readonly databases: number;
  /** Statements for each database. */
  readonly statements: number;
  readonly ask: AskStatement;
}

/** How often each kind of outcome was seen. */
export type Outcomes = Readonly<Record<string, number>>;

export const CANARY = 'what nobody may read or write';
/** Databases that are on disk at the same time. The next one replaces the oldest. */
export const SLOTS = 8;
const TABLES = 300;

/** Returns the database with this number. */
export function databaseAt(kind: FuzzedDatabase['kind'], number: number): FuzzedDatabase {
  return { kind, path: `fuzzed-${number % SLOTS}.${kind === 'files' ? 'csv' : kind}` };
}

/** Rejects when an outcome holds the canary. */
export async function fuzzDatabases(options: FuzzOptions): Promise<Outcomes> {
  const { folder, canary, random, databases, statements, ask } = options;
  const seeds = makeSeeds(folder);
  const outcomes: Record<string, number> = {};
  for (let number = 0; number < databases; number++) {
    const { kind, bytes } = random.pick(seeds);
    const database = databaseAt(kind, number);
    writeFileSync(join(folder, database.path), damaged(bytes, random));
    for (let count = 0; count < statements; count++) {
      const sql = statement(kind, random, { folder, canary });
      const outcome = await ask(database, sql, random.is(0.3));
      if (outcome.text.includes(CANARY)) throw new Error(`The canary was read with ${sql}`);
      outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1;
    }
  }
  return outcomes;
}

interface Seed {
  readonly kind: FuzzedDatabase['kind'];
  readonly bytes: Buffer;
}

/** Sound databases: with rows, indexes, views, triggers and generated columns; with full text; with a huge schema. */
function makeSeeds(folder: string): Seed[] {
  const at = (name: string) => join(folder, name);
  const rows =
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, 'text ' || i, randomblob(50) FROM n";
  writeSqlite(
    at('seed-1'),
    'CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB, d AS (a * 2), e AS (upper(b)) STORED, CHECK (a > 0))',
    `INSERT INTO t ${rows}`,
    'CREATE INDEX t_b ON t (b, e)',
    'CREATE VIEW v AS SELECT t.a, u.b FROM t JOIN t AS u ON u.a = t.d',
    'CREATE TRIGGER on_delete AFTER DELETE ON t BEGIN INSERT INTO t (a, b) VALUES (old.a + 100000, old.b); END',
  );
  writeSqlite(
    at('seed-2'),
    'CREATE VIRTUAL TABLE t USING fts5(a, b)',
    "INSERT INTO t VALUES ('one two', 'three'), ('two', 'four')",
    'CREATE VIRTUAL TABLE v USING rtree(id, x, y)',
    'INSERT INTO v VALUES (1, 2, 3), (2, 4, 5)',
  );
  writeSqlite(
    at('seed-3'),
    ...Array.from({ length: TABLES }, (_, n) => `CREATE TABLE t${n || ''} (a, b DEFAULT (1 + ${n}))`),
  );
  writeDuckdb(
    at('seed-4'),
    "CREATE TABLE t AS SELECT i AS a, 'text ' || i AS b, [i, i + 1] AS c, {'x': i} AS d FROM range(500) r(i)",
    'CREATE VIEW v AS SELECT a, b FROM t WHERE a % 2 = 0',
    'CREATE MACRO m(x) AS x + 1',
  );
  writeFileSync(
    at('seed-5'),
    `a,b\n${Array.from({ length: 200 }, (_, n) => `${n},"text ${n}"`).join('\n')}\n`,
  );
  const kinds = ['sqlite', 'sqlite', 'sqlite', 'duckdb', 'files'] as const;
  return kinds.map((kind, n) => ({ kind, bytes: readFileSync(at(`seed-${n + 1}`)) }));
}

/** Damaged databases: some bytes, some pages or the length are wrong. A few are undamaged. */
function damaged(bytes: Buffer, random: SeededRandom): Buffer {
  const copy = Buffer.from(bytes);
  const how = random.below(9);
  if (how > 4) return copy;
  if (how === 0) return copy.subarray(0, random.below(copy.length));
  for (let flips = 1 + random.below(how < 3 ? 4 : 200); flips > 0; flips--) {
    // The beginning of the file has the schema and the sizes.
    const within = random.is(0.5) ? Math.min(copy.length, 8192) : copy.length;
    if (how === 4) {
      const [from, to] = [random.below(copy.length), random.below(copy.length)];
      copy.copy(copy, to, from, Math.min(copy.length, from + 512));
    } else copy[random.below(within)] = random.below(256);
  }
  return copy;
}

const TERMS = ['a', 'b', 'a', 'b', '1', "'x'", 'NULL', '-9223372036854775808', '1e308', "x'00ff'"];
/** Calls that contain a term in place of X. */
const CALLS = [
  'count(*)',
  'max(X)',
  'length(X)',
  'upper(X)',
  'abs(X)',
  'hex(X)',
  'coalesce(X, 1)',
  'CAST(X AS TEXT)',
  'substr(X, 1, 2)',
  'CASE WHEN X IS NULL THEN 1 ELSE X END',
  "printf('%s', X)",
  'load_extension(X)',
];
const SOURCES = [
  't',
  't',
  't AS u',
  'v',
  '(SELECT 1 AS a, 2 AS b)',
  '(SELECT 1 AS a, NULL AS b)',
  "json_each('[1,[2]]')",
  'sqlite_master',
  "pragma_table_info('t')",
  'dbstat',
  'range(10)',
  "read_text('CANARY')",
  'missing',
];

/** Statements: attempts to escape, and statements from a small grammar. */
function statement(
  kind: Seed['kind'],
  random: SeededRandom,
  places: { readonly folder: string; readonly canary: string },
): string {
  const known = { sqlite: SQLITE, duckdb: DUCKDB, files: DATA_FILES }[kind];
  const sql = random.is(0.3) ? random.pick(known) : generated(random);
  return sql
    .replaceAll(/\b(SECRET|THEIRS|CANARY)\b/g, places.canary)
    .replaceAll(/\bOUT\b/g, join(places.folder, '../escaped'))
    .replaceAll(/\bIN(?=['/?])/g, join(places.folder, 'inside'));
}

function generated(random: SeededRandom): string {
  const term = (depth = 0): string => {
    if (depth > 3 || random.is(0.5)) return random.pick(TERMS);
    if (random.is(0.5)) return random.pick(CALLS).replaceAll('X', term(depth + 1));
    if (random.is(0.3)) return `(${select(depth + 1)})`;
    return `(${term(depth + 1)} ${random.pick(['+', '*', '||', '=', '<', 'LIKE', 'IS', 'AND'])} ${term(depth + 1)})`;
  };
  const select = (depth = 0): string => {
    const [from, where] = [random.pick(SOURCES), random.is(0.4) ? ` WHERE ${term(depth + 1)}` : ''];
    const joined = random.is(0.2) ? `, ${random.pick(SOURCES)}` : '';
    const tail = random.pick(['', ' ORDER BY 1', ' LIMIT 3', ' GROUP BY 1', ` UNION ALL SELECT ${term(4)}`]);
    return `SELECT ${term(depth + 1)} FROM ${from}${joined}${where}${tail}`;
  };
  return random.pick([
    () => select(),
    () => `WITH w AS (${select()}) SELECT * FROM w`,
    () => `INSERT INTO t (b) ${select()}`,
    () => `UPDATE t SET b = ${term()}${random.is(0.5) ? ` WHERE ${term()}` : ''}`,
    () => `DELETE FROM t WHERE ${term()}`,
    () => `EXPLAIN ${select()}`,
    () => `CREATE VIEW w${random.below(9)} AS ${select()}`,
    () => `CREATE TABLE w${random.below(9)} (a CHECK (${term()}), b DEFAULT (${term()}), c AS (${term()}))`,
    () => `CREATE TRIGGER w${random.below(9)} AFTER INSERT ON t BEGIN ${select()}; END`,
    () => `CREATE INDEX w${random.below(9)} ON t (${term()})`,
    () =>
      `PRAGMA ${random.pick(['integrity_check', 'table_info(t)', 'writable_schema = 1', 'user_version'])}`,
    () => 'ANALYZE',
    () => 'REINDEX',
    () => 'DROP TABLE t',
  ])();
}
