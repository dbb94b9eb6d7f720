/** DuckDB, SQLite and data files in the folder of a workspace. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { DATASOURCE_FAILURES } from '#src/datasource/failure.ts';
import { writeDuckdb, writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import type { Owner } from './listening.ts';
import { ask, probeFixture } from './probe-fixture.ts';

const WORKS = { ok: true, message: 'The connection works.' };
const MISSING = { ok: false, message: DATASOURCE_FAILURES.file_missing };
const UNUSABLE = { ok: false, message: DATASOURCE_FAILURES.file_unusable };

const SQLITE = [
  'CREATE TABLE item (id INTEGER, name TEXT, price REAL, picture BLOB)',
  "INSERT INTO item VALUES (1, 'é', 1.5, x'00ff'), (9007199254740993, NULL, 2, NULL)",
];
const DUCKDB = `CREATE TABLE item AS SELECT 1 AS id, 9007199254740993 AS big, 1.10::DECIMAL(9, 2) AS price, 'é' AS name,
  '\\x00\\xFF'::BLOB AS picture, DATE '2024-02-29' AS day, [1, 2] AS list, {'a': 1} AS pair, NULL::INTEGER AS nothing`;

/** Fills a workspace with files of each kind, readable and broken ones, and with links that lead out of it. */
function workspace(owner: Owner) {
  const [fixture, outside] = [probeFixture(owner), probeFixture(owner).filesDirectory];
  const at = (...path: string[]) => join(fixture.filesDirectory, ...path);
  mkdirSync(at('data', 'more'), { recursive: true });
  writeFileSync(at('data', 'sales.csv'), 'day,amount\n2024-02-29,1.5\n2024-03-01,2\n');
  writeFileSync(at('data', 'more', 'people.jsonl'), '{"id": 1, "tags": ["a"]}\n{"id": 2, "tags": []}\n');
  writeFileSync(at('data', 'packed.csv.gz'), gzipSync('a,b\n1,x\n'));
  writeFileSync(at('data', 'broken.parquet'), 'no parquet');
  writeFileSync(at('data', 'notes.txt'), 'no data');
  writeFileSync(at('broken.duckdb'), 'no database'.repeat(1000));
  writeFileSync(at('broken.sqlite'), 'no database'.repeat(1000));
  writeSqlite(at('shop.sqlite'), ...SQLITE);
  writeDuckdb(at('shop.duckdb'), DUCKDB);
  writeSqlite(join(outside, 'secret.sqlite'), ...SQLITE);
  writeDuckdb(join(outside, 'secret.duckdb'), DUCKDB);
  writeFileSync(join(outside, 'secret.csv'), 'secret\n1\n');
  symlinkSync(outside, at('way-out'));
  for (const name of ['secret.sqlite', 'secret.duckdb', 'secret.csv'])
    symlinkSync(join(outside, name), at('data', name));
  symlinkSync(at('shop.sqlite'), at('data', 'within.sqlite'));
  return { ...fixture, outside, at };
}

/** Databases for the tests that change nothing. */
const shared = workspace({ after });

test('databases and files of the workspace can be queried, and a test of the connection leaves no files', async () => {
  const { probe, at } = shared;
  const before = [readdirSync(at()), readdirSync(at('data'))];
  const connections = [
    { kind: 'sqlite', path: 'shop.sqlite' },
    { kind: 'sqlite', path: './data/within.sqlite' },
    { kind: 'duckdb', path: 'shop.duckdb' },
    { kind: 'files', path: '.' },
    { kind: 'files', path: 'data' },
    { kind: 'files', path: 'data/sales.csv' },
  ];
  assert.deepEqual(
    await Promise.all(connections.map((one) => probe(one))),
    connections.map(() => WORKS),
  );
  assert.deepEqual([readdirSync(at()), readdirSync(at('data'))], before);
});

test('a missing file and a file outside of the workspace get the same response', async () => {
  const { probe, at } = shared;
  const connections = [
    ...['none.sqlite', 'data', 'data/secret.sqlite', 'way-out/secret.sqlite', 'data/none/x'].map((path) => ({
      kind: 'sqlite',
      path,
    })),
    ...['none.duckdb', 'data', 'data/secret.duckdb', 'way-out/secret.duckdb'].map((path) => ({
      kind: 'duckdb',
      path,
    })),
    ...['none', 'way-out', 'data/secret.csv', 'way-out/secret.csv'].map((path) => ({ kind: 'files', path })),
  ];
  for (const connection of connections)
    assert.deepEqual(await probe(connection), MISSING, JSON.stringify(connection));
  assert.equal(readdirSync(at()).includes('none.sqlite'), false);
});

test('a file of another kind cannot be used', async () => {
  const { probe } = shared;
  for (const connection of [
    { kind: 'sqlite', path: 'broken.sqlite' },
    { kind: 'sqlite', path: 'shop.duckdb' },
    { kind: 'duckdb', path: 'broken.duckdb' },
    { kind: 'duckdb', path: 'data/sales.csv' },
    { kind: 'files', path: 'data/notes.txt' },
    { kind: 'files', path: 'data/broken.parquet' },
  ]) {
    assert.deepEqual(await probe(connection), UNUSABLE, JSON.stringify(connection));
  }
});

test('SQLite returns values of every kind in a column of any declared type', async () => {
  const session = await shared.open({ kind: 'sqlite', path: 'shop.sqlite' });
  const values = `SELECT id, name, price, picture FROM item WHERE 0 UNION ALL
    SELECT 'Infinity', x'00ff', '12', '{"integer": "1"}' UNION ALL SELECT 1e999, 9007199254740993, x'', 'AA=='`;
  assert.deepEqual((await ask(session, values)).rows, [
    ['Infinity', new Uint8Array([0, 255]), '12', '{"integer": "1"}'],
    [Number.POSITIVE_INFINITY, 9007199254740993n, new Uint8Array(), 'AA=='],
  ]);
});

for (const [kind, quotient, types] of [
  ['sqlite', '? / 4', ['real', 'integer']],
  ['duckdb', '? // 4', ['DOUBLE', 'INTEGER']],
] as const) {
  test(`a whole float reaches ${kind} as a float, and an integer as an integer`, async () => {
    const session = await shared.open({ kind, path: `shop.${kind}` });
    const sql = `SELECT typeof(?), typeof(?), ${quotient}, ${quotient}`;
    const { rows } = await ask(session, sql, { parameters: [2, 2n, 1e300, 2n] });
    assert.deepEqual(rows, [[...types, 2.5e299, 0]]);
  });
}

test('every data file is a table, and a broken file does not affect the other tables', async () => {
  const session = await shared.open({ kind: 'files', path: 'data' });
  assert.deepEqual((await ask(session, 'SHOW TABLES')).rows, [['packed'], ['people'], ['sales']]);
  assert.deepEqual((await ask(session, 'SELECT * FROM sales ORDER BY day')).rows, [
    ['2024-02-29', 1.5],
    ['2024-03-01', 2],
  ]);
  assert.deepEqual((await ask(session, 'SELECT * FROM people ORDER BY id')).rows, [
    [1, '["a"]'],
    [2, '[]'],
  ]);
  assert.deepEqual((await ask(session, 'SELECT * FROM packed')).rows, [[1, 'x']]);
});

test('the error of a statement on an unreadable data file says why the file is not a table', async () => {
  const session = await shared.open({ kind: 'files', path: 'data' });
  await assert.rejects(ask(session, 'SELECT * FROM Broken'), {
    category: 'query',
    detail:
      /^The file broken\.parquet is no table, because it cannot be read: .*too small to be a Parquet file/,
  });
});

test('data files whose names differ only in their endings or capitals are separate tables', async (t) => {
  const { open, at } = workspace(t);
  mkdirSync(at('alike', 'more'), { recursive: true });
  const files = ['A.tsv', 'a.csv', 'a.csv.gz', 'a.json', 'more/a.csv'];
  for (const name of files) {
    const text = name.endsWith('.json') ? `[{"file": "${name}"}]` : `file\n${name}\n`;
    writeFileSync(at('alike', name), name.endsWith('.gz') ? gzipSync(text) : text);
  }
  const session = await open({ kind: 'files', path: 'alike' });
  const views = ['A', 'a.csv', 'a.csv.gz', 'a.json', 'more/a'];
  const found = await Promise.all(views.map((view) => ask(session, `SELECT file FROM "${view}"`)));
  assert.deepEqual(
    found.map(({ rows }) => rows),
    files.map((name) => [[name]]),
  );
});

const REFUSED: readonly (readonly [kind: string, path: string, sql: string])[] = [
  ['sqlite', 'shop.sqlite', "ATTACH 'other.sqlite' AS other"],
  ['sqlite', 'shop.sqlite', "/* x */ ; -- y\n ATTACH 'other.sqlite' AS other"],
  ['sqlite', 'shop.sqlite', "EXPLAIN QUERY PLAN ATTACH 'other.sqlite' AS other"],
  ['sqlite', 'shop.sqlite', "VACUUM INTO 'copy.sqlite'"],
  ['sqlite', 'shop.sqlite', 'PRAGMA query_only = 0'],
  ['sqlite', 'shop.sqlite', 'PRAGMA journal_mode = wal'],
  ['sqlite', 'shop.sqlite', "SELECT load_extension('x')"],
  ['sqlite', 'shop.sqlite', 'DELETE FROM item'],
  ['duckdb', 'shop.duckdb', 'DELETE FROM item'],
  ['duckdb', 'shop.duckdb', "ATTACH 'other.duckdb'"],
  ['duckdb', 'shop.duckdb', "COPY item TO 'copy.csv'"],
  ['duckdb', 'shop.duckdb', "SELECT * FROM read_text('/etc/passwd')"],
  ['duckdb', 'shop.duckdb', "SELECT * FROM glob('/etc/*')"],
  ['duckdb', 'shop.duckdb', "SELECT * FROM 'https://example.com/x.csv'"],
  ['duckdb', 'shop.duckdb', 'INSTALL httpfs'],
  ['duckdb', 'shop.duckdb', 'SET enable_external_access = true'],
  ['duckdb', 'shop.duckdb', 'RESET disabled_filesystems'],
  ['duckdb', 'shop.duckdb', 'SELECT 1; SELECT 2'],
  ['files', 'data', "SELECT * FROM read_text('/etc/passwd')"],
  ['files', 'data', "SELECT * FROM read_csv('data/notes.txt')"],
  ['files', 'data', "COPY sales TO '/proc/self/fd/20'"],
  ['files', 'data', 'CREATE TABLE x AS SELECT 1'],
  ['files', 'data', 'DROP VIEW sales'],
  ['files', 'data', "ATTACH 'x.duckdb'"],
];

test('statements on data files reach no other file, and change nothing', async () => {
  const { open, at } = shared;
  const before = readdirSync(at());
  const sessions = new Map(
    await Promise.all(REFUSED.map(async ([kind, path]) => [kind, await open({ kind, path })] as const)),
  );
  for (const readOnly of [true, false]) {
    for (const [kind, , sql] of REFUSED) {
      const isSame = kind !== 'sqlite' || sql.startsWith('DELETE'); // only SQLite is ever written
      if (isSame && !readOnly) continue;
      await assert.rejects(ask(sessions.get(kind)!, sql, { readOnly }), { category: 'query' }, sql);
    }
  }
  assert.deepEqual(readdirSync(at()), before);
});

test('a database file cannot be read as a data file, and a link in place of a database file is not followed', async () => {
  const { open, at } = shared;
  const session = await open({ kind: 'duckdb', path: 'shop.duckdb' });
  assert.deepEqual((await ask(session, 'SELECT id FROM item')).rows, [[1]]);
  for (const path of [at('shop.duckdb'), at('shop.duckdb.wal')]) {
    await assert.rejects(ask(session, `SELECT * FROM read_text('${path}')`), { category: 'query' });
  }
});

test('PIVOT without the values of its columns selects from a DuckDB database and from data files', async () => {
  const duckdb = await shared.open({ kind: 'duckdb', path: 'shop.duckdb' });
  const files = await shared.open({ kind: 'files', path: 'data' });
  const byName = 'PIVOT item ON name USING sum(price)';
  for (const [session, sql, rows] of [
    [duckdb, 'PIVOT (SELECT id, name FROM item) ON name USING max(id)', [[1]]],
    [duckdb, `SELECT "é" FROM (${byName} GROUP BY id) -- a comment`, [['1.10']]],
    [duckdb, `WITH p AS (${byName} GROUP BY id) SELECT id FROM p;`, [[1]]],
    [files, 'PIVOT sales ON amount USING count(*) GROUP BY day ORDER BY day LIMIT 1', [['2024-02-29', 1, 0]]],
  ] as const)
    assert.deepEqual((await ask(session, sql)).rows, rows, sql);
  for (const sql of [
    `${byName}; SELECT 1`,
    `CREATE TEMP TABLE t AS ${byName}`,
    `COPY (${byName}) TO 'x.csv'`,
  ])
    await assert.rejects(ask(duckdb, sql, { readOnly: false }), { category: 'query' }, sql);
});

test('SQLite can be written, and DuckDB and files cannot', async (t) => {
  const { open } = workspace(t);
  const sqlite = await open({ kind: 'sqlite', path: 'shop.sqlite' });
  await ask(sqlite, 'INSERT INTO item (id) VALUES (7)', { readOnly: false });
  assert.deepEqual((await ask(sqlite, 'SELECT id FROM item WHERE id = 7')).rows, [[7]]);
  const duckdb = await open({ kind: 'duckdb', path: 'shop.duckdb' });
  await assert.rejects(ask(duckdb, 'DELETE FROM item', { readOnly: false }), { category: 'query' });
});

test('the second of two queries sees data that were written between them', async (t) => {
  const { open, at } = workspace(t);
  const [files, duckdb] = [
    await open({ kind: 'files', path: 'data' }),
    await open({ kind: 'duckdb', path: 'shop.duckdb' }),
  ];
  const sqlite = await open({ kind: 'sqlite', path: 'shop.sqlite' });
  assert.equal((await ask(files, 'SHOW TABLES')).rows.length, 3);
  assert.deepEqual((await ask(duckdb, 'SELECT id FROM item')).rows, [[1]]);
  assert.equal((await ask(sqlite, 'SELECT id FROM item')).rows.length, 2);
  writeFileSync(at('data', 'new.csv'), 'a\n1\n');
  writeDuckdb(at('shop.duckdb'), 'UPDATE item SET id = 2');
  writeSqlite(at('other.sqlite'), ...SQLITE);
  renameSync(at('other.sqlite'), at('shop.sqlite'));
  await ask(sqlite, 'INSERT INTO item (id) VALUES (7)', { readOnly: false });
  assert.deepEqual((await ask(files, 'SELECT * FROM new')).rows, [[1]]);
  assert.deepEqual((await ask(duckdb, 'SELECT id FROM item')).rows, [[2]]);
  assert.equal((await ask(sqlite, 'SELECT id FROM item')).rows.length, 3);
});
