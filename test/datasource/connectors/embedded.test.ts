/** DuckDB, SQLite and data files: databases that run in this server, on files of a workspace. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { ROW_LIMIT_BYTES } from '#src/datasource/rows.ts';
import { writeDuckdb, writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startEngine } from '../engine-host.ts';
import { probeFixture } from '../probe-fixture.ts';
import { cannot, conformance, type Overrides, type Rules } from './conformance.ts';

/** How many requests wait for an answer of an engine. All engines of this file are counted, because its tests run one by one. */
let waiting = 0;
const engines = new Engines((launch) => {
  const engine = startEngine(launch);
  const ask = engine.ask.bind(engine);
  engine.ask = async (request) => {
    waiting++;
    try {
      return await ask(request);
    } finally {
      waiting--;
    }
  };
  return engine;
});
after(() => engines[Symbol.dispose]());
const fixture = probeFixture({ after }, { engines });
const at = (name: string) => join(fixture.filesDirectory, name);
writeSqlite(
  at('shop.sqlite'),
  'CREATE TABLE item (id INTEGER, name TEXT, price REAL, picture BLOB)',
  "INSERT INTO item VALUES (1, 'é', 1.5, x'00ff'), (9007199254740993, NULL, 2, NULL)",
  'CREATE TABLE changed (a INTEGER)',
);
const DUCKDB = `SELECT 1 AS id, 9007199254740993 AS big, 1.10::DECIMAL(9, 2) AS price, 'é' AS name,
  '\\x00\\xFF'::BLOB AS picture, DATE '2024-02-29' AS day, [1, 2] AS list, {'a': 1} AS pair, NULL::INTEGER AS nothing`;
writeDuckdb(at('shop.duckdb'), `CREATE TABLE item AS ${DUCKDB}`);
writeFileSync(at('sales.csv'), 'day,amount\n2024-02-29,1.5\n');

const NO_ACCOUNTS = cannot('the database is a file, without accounts');
const NO_NETWORK = cannot('the database runs in this server');
const ONE_STATEMENT = 'Exactly one statement is expected. Run them one after the other.';
const LONG_NAME = 'n'.repeat(20_000);

/** The rules that all three have in common. `text` returns the expression for a text of so many bytes. */
function common(text: (bytes: number) => string) {
  return {
    wrongCredentials: NO_ACCOUNTS,
    withoutTls: NO_NETWORK,
    requiredTls: NO_NETWORK,
    unknownCertificate: NO_NETWORK,
    noResult: cannot('every statement that reads has columns, and SQLite alone writes'),
    largeRows: {
      sql: Array.from({ length: 30 }, () => `SELECT ${text(200_000)}`).join(' UNION ALL '),
      total: 30,
      most: 3,
    },
    tooLarge: {
      largest: { sql: `SELECT ${text(ROW_LIMIT_BYTES)}`, lengths: [ROW_LIMIT_BYTES] },
      beyond: `SELECT ${text(ROW_LIMIT_BYTES + 1)}`,
      category: 'row_too_large',
      staysOpen: true,
    },
    several: {
      'SELECT 1; SELECT 2': ONE_STATEMENT,
      'SELECT 1; DROP TABLE item': ONE_STATEMENT,
      "SELECT ';'; -- a\nSELECT 2": ONE_STATEMENT,
    },
    cancelledEarly: NO_NETWORK,
    endsByItself: cannot('a statement is cancelled by ending its process; engines.test.ts has the rule'),
    lost: NO_NETWORK,
    lostWhileIdle: cannot('each statement takes a process; engines.test.ts has the rule'),
  } as const satisfies Partial<Rules>;
}

const start = (path: string, kind: string) => (_: unknown, overrides?: Overrides) => ({
  connection: { kind, path, ...overrides },
  fixture,
  observe: () => ({ isRunning: () => waiting > 0, disconnect: () => {} }),
});

const ENDLESS = 'WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)';

conformance({
  kind: 'sqlite',
  start: start('shop.sqlite', 'sqlite'),
  missing: 'file_missing',
  rules: {
    ...common((bytes) => `replace(hex(zeroblob(${bytes})), '00', 'x')`),
    works: { 'to a file': {} },
    missing: { file: { path: 'none.sqlite' } },
    values: {
      sql: 'SELECT * FROM item',
      columns: 'id:integer:byCell name:text:byCell price:float:byCell picture:bytes:byCell',
      rows: [
        [1, 'é', 1.5, new Uint8Array([0, 255])],
        [9007199254740993n, null, 2, null],
      ],
    },
    noRows: {
      sql: 'SELECT id FROM item WHERE false',
      columns: [{ name: 'id', type: 'integer', byCell: true }],
    },
    noResult: 'DELETE FROM changed',
    manyRows: { sql: `${ENDLESS} SELECT i FROM c LIMIT 50000`, total: 50_000, last: [50_000] },
    longNames: {
      sql: `SELECT id AS ${LONG_NAME} FROM item`,
      columns: [{ type: 'integer', byCell: true }],
    },
    parameters: {
      sql: 'SELECT ?, ?, ?, ?, ?, ?, ?, ?',
      rows: [["it's; DROP TABLE x -- \\", 5, 9007199254740993n, 1.5, 2, null, 1, new Uint8Array([255, 0])]],
    },
    infinity: { sql: 'SELECT ? > 1e300, ? < -1e300', rows: [[1, 1]] },
    writes: { 'DELETE FROM item': undefined, 'DROP TABLE item': undefined },
    message: { sql: 'SELECT no_such_column FROM item', detail: /no_such_column/ },
    abandoned: `${ENDLESS} SELECT i FROM c`,
    cancelled: `${ENDLESS} SELECT max(i) FROM c`,
    changed: { sql: 'INSERT INTO changed VALUES (1), (2), (3)', count: 3 },
  },
});

const duckdbRules = {
  ...common((bytes) => `repeat('x', ${bytes})`),
  noRows: { sql: 'SELECT 1 AS one WHERE false', columns: [{ name: 'one', type: 'integer' }] },
  manyRows: { sql: 'SELECT range + 1 FROM range(50000)', total: 50_000, last: [50_000] },
  longNames: {
    sql: `SELECT 1 AS ${LONG_NAME}`,
    columns: [{ type: 'integer' }],
  },
  parameters: {
    sql: 'SELECT ?, ?::BIGINT, ?::BIGINT, ?, ?, ?, ?, ?::BLOB',
    rows: [["it's; DROP TABLE x -- \\", 5, 9007199254740993n, 1.5, 2, null, true, new Uint8Array([255, 0])]],
  },
  infinity: { sql: 'SELECT ? > 1e300, ? < -1e300', rows: [[true, true]] },
  message: { sql: 'SELECT no_such_column', detail: /no_such_column/ },
  abandoned: 'SELECT * FROM range(1000000000)',
  cancelled: 'SELECT count(*) FROM range(1000000000) a, range(1000000000) b',
  changed: cannot('it is read, never written'),
} as const satisfies Partial<Rules>;

conformance({
  kind: 'duckdb',
  start: start('shop.duckdb', 'duckdb'),
  missing: 'file_missing',
  rules: {
    ...duckdbRules,
    works: { 'to a file': {} },
    missing: { file: { path: 'none.duckdb' } },
    values: {
      sql: 'SELECT * FROM item',
      columns:
        'id:integer big:integer price:decimal name:text picture:bytes day:date list:json pair:json nothing:integer',
      rows: [
        [1, 9007199254740993n, '1.10', 'é', new Uint8Array([0, 255]), '2024-02-29', '[1,2]', '{"a":1}', null],
      ],
    },
    writes: { 'DELETE FROM item': undefined, 'CREATE TABLE x AS SELECT 1': undefined },
  },
});

conformance({
  kind: 'files',
  start: start('.', 'files'),
  missing: 'file_missing',
  rules: {
    ...duckdbRules,
    works: { 'to a folder': {}, 'to a file': { path: 'sales.csv' } },
    missing: { file: { path: 'none.csv' } },
    values: { sql: 'SELECT * FROM sales', columns: 'day:date amount:float', rows: [['2024-02-29', 1.5]] },
    writes: { 'CREATE TABLE x AS SELECT 1': undefined, 'DROP VIEW sales': undefined },
  },
});
