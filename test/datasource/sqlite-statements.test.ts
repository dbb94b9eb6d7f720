import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasSecondStatement } from '#src/datasource/embedded/sqlite-statements.ts';

const TRIGGER =
  'create trigger t after insert on a begin insert into b values (case 1 when 1 then 2 end); delete from c; end';

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
  test(`one statement: ${one}`, () => assert.equal(hasSecondStatement(one), false));
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
  test(`more than one: ${several}`, () => assert.equal(hasSecondStatement(several), true));
}
