/** SQLite databases in the files of a workspace. */
import { after } from 'node:test';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { conformance } from './conformance.ts';
import { embeddedRules, embeddedWorkspace, LONG_NAME } from './embedded-vendor.ts';

const { at, start } = embeddedWorkspace({ after });
writeSqlite(
  at('shop.sqlite'),
  'CREATE TABLE item (id INTEGER, name TEXT, price REAL, picture BLOB)',
  "INSERT INTO item VALUES (1, 'é', 1.5, x'00ff'), (9007199254740993, NULL, 2, NULL)",
  'CREATE TABLE changed (a INTEGER)',
);

const ENDLESS = 'WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)';

conformance({
  kind: 'sqlite',
  start: start('sqlite', 'shop.sqlite'),
  missing: 'file_missing',
  rules: {
    ...embeddedRules((bytes) => `replace(hex(zeroblob(${bytes})), '00', 'x')`),
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
