/** DuckDB databases and data files in the files of a workspace. DuckDB reads both. */
import { writeFileSync } from 'node:fs';
import { after } from 'node:test';
import { writeDuckdb } from '#test/support/stand-ins/python-databases.ts';
import { cannot, conformance, type Rules } from './conformance.ts';
import { embeddedRules, embeddedWorkspace, LONG_NAME } from './embedded-vendor.ts';

const { at, start } = embeddedWorkspace({ after });
const DUCKDB = `SELECT 1 AS id, 9007199254740993 AS big, 1.10::DECIMAL(9, 2) AS price, 'é' AS name,
  '\\x00\\xFF'::BLOB AS picture, DATE '2024-02-29' AS day, [1, 2] AS list, {'a': 1} AS pair, NULL::INTEGER AS nothing`;
writeDuckdb(at('shop.duckdb'), `CREATE TABLE item AS ${DUCKDB}`);
writeFileSync(at('sales.csv'), 'day,amount\n2024-02-29,1.5\n');

const duckdbRules = {
  ...embeddedRules((bytes) => `repeat('x', ${bytes})`),
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
  start: start('duckdb', 'shop.duckdb'),
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
  start: start('files', '.'),
  missing: 'file_missing',
  rules: {
    ...duckdbRules,
    works: { 'to a folder': {}, 'to a file': { path: 'sales.csv' } },
    missing: { file: { path: 'none.csv' } },
    values: { sql: 'SELECT * FROM sales', columns: 'day:date amount:float', rows: [['2024-02-29', 1.5]] },
    writes: { 'CREATE TABLE x AS SELECT 1': undefined, 'DROP VIEW sales': undefined },
  },
});
