/** Hostile databases and statements made at random, for engines that are confined as on any server. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { embeddedSession } from '#src/datasource/embedded/embedded-session.ts';
import type { StartEngine } from '#src/datasource/embedded/engine-port.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { DatasourceFailure } from '#src/datasource/failure.ts';
import { DATA_FILES, DUCKDB, SQLITE } from '#test/escape/sql-statements.ts';
import { writeDuckdb, writeSqlite } from '#test/support/python-databases.ts';
import type { SeededRandom } from '#test/support/random.ts';

export interface FuzzOptions {
  /** An empty folder of the caller's. */
  readonly base: string;
  readonly random: SeededRandom;
  readonly startEngine: StartEngine;
  readonly databases: number;
  /** For each database. */
  readonly statements: number;
  /** After which a statement is cancelled. */
  readonly patienceMs: number;
}

export interface FuzzReport {
  readonly statements: number;
  /** How often each thing came of one: `rows`, or the category of its failure. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** What lies beside the workspace's folder afterwards; only `canary` was there before. */
  readonly outside: readonly string[];
  readonly canary: string;
}

const CANARY = 'what nobody may read or write';
const TABLES = 300;

/** Throws when a statement fails with anything but a `DatasourceFailure`, or gives the canary away. */
export async function fuzzEngines(options: FuzzOptions): Promise<FuzzReport> {
  const { base, random, databases, statements, patienceMs, startEngine } = options;
  const folder = join(base, 'files');
  const canary = join(base, 'canary');
  mkdirSync(folder);
  writeFileSync(canary, CANARY);
  const seeds = makeSeeds(folder);
  const outcomes: Record<string, number> = {};
  using engines = new Engines(startEngine);
  for (let number = 0; number < databases; number++) {
    const { kind, bytes } = random.pick(seeds);
    const path = `fuzzed-${number % 8}.${kind === 'files' ? 'csv' : kind}`;
    writeFileSync(join(folder, path), damaged(bytes, random));
    const session = embeddedSession({ kind, filesDirectory: folder, path }, engines);
    for (let count = 0; count < statements; count++) {
      const sql = statement(kind, random, { folder, canary });
      const outcome = await outcomeOf(async () => {
        const signal = AbortSignal.timeout(patienceMs);
        const limits = { signal, readOnly: random.is(0.3), maxRows: 1000 };
        for await (const { rows } of session.query(sql, [], limits)) {
          if (rows.flat().some((cell) => String(cell).includes(CANARY))) throw new Error(`It leaks: ${sql}`);
        }
      });
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    }
  }
  return {
    statements: databases * statements,
    outcomes,
    outside: readdirSync(base).filter((name) => name !== 'files'),
    canary: readFileSync(canary, 'utf8'),
  };
}

export { CANARY };

interface Seed {
  readonly kind: 'sqlite' | 'duckdb' | 'files';
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

/** With some of its bytes, pages or its length wrong; now and then as it was. */
function damaged(bytes: Buffer, random: SeededRandom): Buffer {
  const copy = Buffer.from(bytes);
  const how = random.below(9);
  if (how > 4) return copy;
  if (how === 0) return copy.subarray(0, random.below(copy.length));
  for (let flips = 1 + random.below(how < 3 ? 4 : 200); flips > 0; flips--) {
    // The beginning is where the schema and the sizes are.
    const within = random.is(0.5) ? Math.min(copy.length, 8192) : copy.length;
    if (how === 4) {
      const [from, to] = [random.below(copy.length), random.below(copy.length)];
      copy.copy(copy, to, from, Math.min(copy.length, from + 512));
    } else copy[random.below(within)] = random.below(256);
  }
  return copy;
}

const TERMS = ['a', 'b', 't.a', '1', "'x'", 'NULL', '-9223372036854775808', '1e308', "x'00ff'", '*', '?'];
const CALLS = [
  'count',
  'max',
  'length',
  'upper',
  'abs',
  'hex',
  'quote',
  'json',
  'printf',
  'substr',
  'load_extension',
  'readfile',
];
const SOURCES = [
  't',
  'v',
  't AS u',
  '(SELECT 1 AS a, 2 AS b)',
  "json_each('[1,[2]]')",
  'sqlite_master',
  "pragma_table_info('t')",
  'dbstat',
  'range(10)',
  "read_text('CANARY')",
  'missing',
];

/** One of those that try to escape, or one from a small grammar. */
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
    if (random.is(0.5)) return `${random.pick(CALLS)}(${term(depth + 1)})`;
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

async function outcomeOf(work: () => Promise<void>): Promise<string> {
  try {
    await work();
    return 'rows';
  } catch (error) {
    if (error instanceof DatasourceFailure) return error.category;
    if (
      error instanceof DOMException ||
      (error instanceof Error && error.message === 'The engine has ended.')
    )
      return 'ended';
    throw error;
  }
}
