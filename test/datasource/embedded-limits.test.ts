/** The limits of memory and size for one statement on an embedded database. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { FAILURES } from '#src/datasource/failure.ts';
import { ROW_LIMIT_BYTES } from '#src/datasource/rows.ts';
import { writeDuckdb, writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { ask, probeFixture } from './probe-fixture.ts';

const fixture = probeFixture({ after });
const at = (name: string) => join(fixture.filesDirectory, name);
writeSqlite(at('a.sqlite'), 'CREATE TABLE kept (id INTEGER)');
writeDuckdb(at('a.duckdb'));
writeFileSync(at('a.csv'), 'id\n1\n');

/** The expression with which each database makes a text of that many bytes. */
const KINDS = {
  sqlite: { path: 'a.sqlite', text: (bytes: number) => `replace(hex(zeroblob(${bytes})), '00', 'x')` },
  duckdb: { path: 'a.duckdb', text: (bytes: number) => `repeat('x', ${bytes})` },
  files: { path: '.', text: (bytes: number) => `repeat('x', ${bytes})` },
};

for (const [kind, { path, text }] of Object.entries(KINDS)) {
  test(`${kind}: a row as large as the limit is returned, and one with a byte more is refused`, async () => {
    const session = await fixture.open({ kind, path });
    const { rows } = await ask(session, `SELECT ${text(ROW_LIMIT_BYTES)}`);
    assert.equal(String(rows[0]?.[0]).length, ROW_LIMIT_BYTES);
    await assert.rejects(ask(session, `SELECT ${text(ROW_LIMIT_BYTES + 1)}`), {
      category: 'row_too_large',
      message: FAILURES.row_too_large,
    });
    assert.deepEqual((await ask(session, 'SELECT 1')).rows, [[1]]);
  });

  test(`${kind}: large rows come in batches of a bounded size`, async () => {
    const session = await fixture.open({ kind, path });
    const rows = Array.from({ length: 30 }, () => `SELECT ${text(200_000)}`).join(' UNION ALL ');
    const signal = new AbortController().signal;
    const sizes: number[] = [];
    for await (const batch of session.query(rows, [], { signal, readOnly: true }))
      sizes.push(batch.rows.length);
    assert.equal(
      sizes.reduce((sum, size) => sum + size, 0),
      30,
    );
    assert(Math.max(...sizes) <= 3, String(sizes));
  });

  for (const sql of ['SELECT 1; SELECT 2', 'SELECT 1; DROP TABLE kept', "SELECT ';'; -- a\nSELECT 2"]) {
    test(`${kind}: several statements are refused, and none has run: ${sql}`, async () => {
      const session = await fixture.open({ kind, path });
      await assert.rejects(ask(session, sql, { readOnly: false }), {
        category: 'query',
        detail: 'Exactly one statement is expected. Run them one after the other.',
      });
      if (kind === 'sqlite') assert.deepEqual((await ask(session, 'SELECT count(*) FROM kept')).rows, [[0]]);
    });
  }
}
