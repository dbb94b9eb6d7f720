// tier: whole, because it makes random or hostile input
/**
 * The databases themselves refuse statements, without any confinement, even after a folder was
 * moved.
 */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { embeddedLink } from '#src/datasource/embedded/embedded-link.ts';
import { Engines } from '#src/datasource/embedded/engines.ts';
import { DATA_FILES, DUCKDB, FORGED_SQLITE, PLANTED_SQLITE, SQLITE } from '#test/escape/sql-statements.ts';
import { eventually } from '#test/support/processes.ts';
import { placed, plantDatabases } from '#test/support/stand-ins/planted-databases.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startEngine, startUnconfined } from './engine-host.ts';
import type { Owner } from './listening.ts';
import { ask } from './probe-fixture.ts';

const SECRET = 'what nobody may read';

/** A workspace's folder, and the folder of another workspace next to it. */
function fixture(owner: Owner, start: typeof startEngine) {
  const base = mkdtempSync(join(tmpdir(), 'troupe-rules-'));
  owner.after(async () => rmSync(base, { recursive: true, force: true }));
  const [folder, outside] = [join(base, 'files'), join(base, 'outside')];
  for (const one of [folder, outside]) mkdirSync(one);
  writeFileSync(join(outside, 'secret'), SECRET);
  writeFileSync(join(folder, 'inside'), 'inside');
  const engines = new Engines(start);
  owner.after(async () => engines[Symbol.dispose]());
  const open = (kind: 'sqlite' | 'duckdb' | 'files', path: string) =>
    embeddedLink({ kind, filesDirectory: folder, path }, engines);
  const paths = {
    IN: join(folder, 'inside'),
    SECRET: join(outside, 'secret'),
    THEIRS: join(outside, 'secret'),
    OUT: join(outside, 'escaped'),
  };
  return { folder, outside, open, paths };
}

const PLACES = [
  ['sqlite', 'a.sqlite', SQLITE],
  ['sqlite', 'planted.sqlite', PLANTED_SQLITE],
  ['sqlite', 'forged.sqlite', FORGED_SQLITE],
  ['duckdb', 'a.duckdb', DUCKDB],
  ['files', 'data', DATA_FILES],
] as const;

for (const readOnly of [false, true]) {
  const who = readOnly ? 'an agent' : 'a notebook';
  test(`without confinement the databases still refuse ${who} every statement that reaches beyond them`, async (t) => {
    const { folder, outside, open, paths } = fixture(t, startUnconfined);
    plantDatabases(folder, paths);
    const before = readdirSync(folder).sort();
    for (const [kind, path, statements] of PLACES) {
      const session = open(kind, path);
      const allowed: string[] = [];
      for (const statement of statements) {
        const sql = placed(statement, paths);
        await ask(session, sql, { readOnly }).then(
          () => allowed.push(sql),
          (error: Error) => assert.ok(!JSON.stringify({ ...error }).includes(SECRET), sql),
        );
      }
      assert.deepEqual(allowed, [], path);
      if (path === 'forged.sqlite') continue;
      const table = kind === 'files' ? 'data' : 't';
      assert.deepEqual((await ask(session, `SELECT a FROM ${table}`, { readOnly })).rows, [[1]]);
    }
    assert.deepEqual(readdirSync(outside), ['secret']);
    assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), SECRET);
    assert.deepEqual(readdirSync(folder).sort(), before);
  });
}

const WRITING = [
  'INSERT INTO t VALUES (3, 4)',
  'UPDATE t SET a = 5',
  'DELETE FROM t',
  'WITH w AS (SELECT 1) INSERT INTO t SELECT 1, 2 FROM w',
  'INSERT INTO t VALUES (1, 2) RETURNING a',
  'REPLACE INTO t VALUES (1, 2)',
  'CREATE TABLE u (a)',
  'CREATE TEMP TABLE u (a)',
  'CREATE VIEW u AS SELECT 1',
  'CREATE INDEX u ON t (a)',
  'CREATE TRIGGER u AFTER INSERT ON t BEGIN SELECT 1; END',
  'CREATE VIRTUAL TABLE u USING fts5(a)',
  'ALTER TABLE t ADD COLUMN c',
  'DROP TABLE t',
  'ANALYZE',
  'BEGIN IMMEDIATE',
  'SAVEPOINT s',
  'EXPLAIN DELETE FROM t',
];

test('no statement of an agent changes a database', async (t) => {
  const { folder, open, paths } = fixture(t, startEngine);
  plantDatabases(folder, paths);
  const before = readFileSync(join(folder, 'a.sqlite'));
  const session = open('sqlite', 'a.sqlite');
  for (const sql of WRITING) await assert.rejects(ask(session, sql), { category: 'query' }, sql);
  assert.deepEqual(readFileSync(join(folder, 'a.sqlite')), before);
});

for (const start of [startEngine, startUnconfined]) {
  const how = start === startEngine ? 'confined' : 'not confined';
  test(`a journal stays in its database's folder when the folder is moved during a statement: ${how}`, async (t) => {
    const { folder, outside, open } = fixture(t, start);
    const [place, moved] = [join(folder, 'place'), join(folder, 'moved')];
    mkdirSync(place);
    const numbers = 'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)';
    for (const database of [join(place, 'a.sqlite'), join(outside, 'a.sqlite')])
      writeSqlite(database, 'CREATE TABLE t (x)', `INSERT INTO t ${numbers} SELECT i FROM n`);
    const session = open('sqlite', 'place/a.sqlite');
    assert.deepEqual((await ask(session, 'SELECT count(*) FROM t', { readOnly: false })).rows, [[20_000]]);
    const stop = new AbortController();
    // The first part takes long before it writes anything, the second part while it writes.
    const slow = `${numbers.replace('20000', '3000000')} UPDATE t SET x = x + (SELECT count(*) FROM n) + (SELECT count(*) FROM t AS u WHERE u.x > t.x)`;
    const statement = ask(session, slow, { readOnly: false, signal: stop.signal });
    const ended = statement.catch((error: unknown) => error);
    await eventually('the statement has begun to write', () => isLockedForWriting(join(place, 'a.sqlite')));
    renameSync(place, moved);
    symlinkSync(outside, place);
    await eventually('a journal', () =>
      [moved, outside].some((one) => existsSync(join(one, 'a.sqlite-journal'))),
    );
    stop.abort();
    assert.ok(await ended);
    assert.deepEqual(readdirSync(outside).sort(), ['a.sqlite', 'secret']);
    assert.ok(existsSync(join(moved, 'a.sqlite-journal')));
  });
}

/** Returns whether a process has reserved the file, according to this machine's list of locks. */
function isLockedForWriting(path: string): boolean {
  const { ino } = statSync(path);
  return new RegExp(`WRITE .*:${ino} `).test(readFileSync('/proc/locks', 'utf8'));
}
