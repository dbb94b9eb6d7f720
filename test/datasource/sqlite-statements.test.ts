/** Counting the statements in a text: SQLite itself finds the end of the first statement. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { ask, probeFixture } from './probe-fixture.ts';

const TRIGGER =
  'create trigger t after insert on a begin insert into b values (case 1 when 1 then 2 end); delete from c; end';
const SEVERAL = 'Exactly one statement is expected. Run them one after the other.';
const fixture = probeFixture({ after });
let databases = 0;

/** A session with a database of three tables, and a trigger when it is wanted. */
async function open(...more: readonly string[]) {
  const path = `${databases++}.sqlite`;
  const tables = ['create table a (x)', 'create table b (x)', 'create table c (x)'];
  writeSqlite(join(fixture.filesDirectory, path), ...tables, ...more);
  return fixture.open({ kind: 'sqlite', path });
}

for (const one of [
  'select 1',
  'select 1;',
  ' ;; ',
  'select 1 ; -- and that is all; really',
  'select \';\' || ";" || `;` || [;] /* ; */',
  "select 'it''s; one'",
  'select 1; /* nothing',
  TRIGGER,
  `${TRIGGER};`,
  `explain query plan ${TRIGGER.replace('create', 'create temporary')}; --`,
  'create table trigger_happy (a)',
]) {
  test(`one statement is accepted: ${one}`, async () => {
    const asked = ask(await open(), one, { readOnly: false });
    // An unknown column causes a different error.
    if (one.includes('[;]')) await assert.rejects(asked, ({ detail }) => detail !== SEVERAL);
    else await asked;
  });
}

for (const several of [
  'select 1; select 2',
  'select 1;select',
  'select 1;;2',
  '-- a\nselect 1; /* b */ drop table c',
  "select ''; select 2",
  "select 'a''; select 2'; select 3",
  'create table trigger (a); end; drop table b',
  `${TRIGGER}; drop table b`,
  'drop trigger t; end',
]) {
  test(`several statements in one text are refused, and no statement runs: ${several}`, async () => {
    const session = await open(...(several.startsWith('drop trigger') ? [TRIGGER] : []));
    const names = async () => (await ask(session, 'select name from sqlite_master order by name')).rows;
    const before = await names();
    await assert.rejects(ask(session, several, { readOnly: false }), { category: 'query', detail: SEVERAL });
    assert.deepEqual(await names(), before);
  });
}
