/** Runs against a real PostgreSQL. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgresServer as server } from '#test/support/stand-ins/databases.ts';
import { redshiftConnection } from '../connections.ts';
import { ask, probeFixture } from '../probe-fixture.ts';

const connection = redshiftConnection();

for (const sql of ['COPY (SELECT 1) TO STDOUT', 'COPY troupe_copied FROM STDIN']) {
  test(`${sql} is refused with a message`, { skip: server.skip }, async (t) => {
    const fixture = probeFixture(t);
    const owner = await fixture.open(connection);
    await ask(owner, 'CREATE TABLE IF NOT EXISTS troupe_copied (a int)', { readOnly: false });
    await assert.rejects(ask(await fixture.open(connection), sql, { readOnly: false }), {
      category: 'query',
      detail:
        'COPY TO STDOUT and COPY FROM STDIN are not supported here. Read rows with SELECT and write them with INSERT.',
    });
    await ask(owner, 'DROP TABLE troupe_copied', { readOnly: false });
  });
}

for (const sql of [
  "COPY (SELECT 1) TO '/nowhere/troupe'",
  "/* a */ COPY (SELECT 1) TO PROGRAM 'false'",
  "/* /* a */ */ COPY (SELECT 1) TO PROGRAM 'false'",
  "DO $$ BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''false'''; END $$",
]) {
  test(`in read-only mode a statement that acts on the host is not sent: ${sql}`, {
    skip: server.skip,
  }, async (t) => {
    const session = await probeFixture(t).open(connection);
    await assert.rejects(ask(session, sql), {
      category: 'query',
      detail: 'Only SELECT, WITH, VALUES, TABLE, SHOW and EXPLAIN are allowed here.',
    });
    assert.deepEqual((await ask(session, '-- a\n(SELECT 1)')).rows, [[1]]);
  });
}
