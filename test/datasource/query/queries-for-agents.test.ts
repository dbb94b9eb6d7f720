// own process: it measures the heap
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import { Descriptions } from '#src/datasource/query/descriptions.ts';
import {
  MAX_KEPT_CHARS,
  MAX_READ_BYTES,
  QueriesForAgents,
} from '#src/datasource/query/queries-for-agents.ts';
import type { RowBatch, RowValue } from '#src/datasource/rows.ts';
import { heapAfterCollection } from '#test/support/heap.ts';

const CALLER = { workspaceId: 'ws_1', userId: 'ann', scopes: ['datasource:read'] } as unknown as Principal;
const METADATA = {
  id: 'ds_1',
  slug: 'sales',
  kind: 'postgres',
  name: null,
  revision: 1,
  configured: true,
  embedded: false,
  createdBy: 'ada',
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
const MIB = 1024 * 1024;

/**
 * Queries a database whose results are `rows`, each row a batch of its own. `made` counts the
 * requested batches.
 */
function asking(rows: Iterable<readonly RowValue[]>) {
  const seen = { made: 0, isOver: false };
  const agents = new QueriesForAgents(
    { get: () => METADATA, isKeptFrom: () => false },
    {
      async *run(): AsyncGenerator<RowBatch> {
        for (const row of rows) {
          seen.made++;
          yield { columns: [{ name: 'a', type: 'text' }], rows: [row] };
        }
        seen.isOver = true;
      },
    },
    new Descriptions(),
  );
  const { signal } = new AbortController();
  const request = { sql: 'SELECT 1', signal, trace: undefined };
  const query = async (shorten: (cell: RowValue) => string, maxRows = 500) => {
    const answer = await agents.query(CALLER, 'sales', { ...request, maxRows, shorten });
    assert.ok('rows' in answer);
    return answer;
  };
  const describe = () => agents.describe(CALLER, 'sales', { signal, trace: undefined, refresh: true });
  return { query, describe, seen };
}

const repeated = (cell: RowValue, count: number) => Array.from({ length: count }, () => [cell]);

test("long cells of an agent's query do not stay in memory", async () => {
  const rows = (function* () {
    for (let i = 0; i < 60; i++) yield [Buffer.alloc(MIB, `${i},`).toString('latin1')];
  })();
  const before = heapAfterCollection();
  const answer = await asking(rows).query((cell) => `${String(cell).slice(0, 400)}…`);
  const grown = heapAfterCollection() - before;
  assert.equal(answer.rows.length, 60);
  assert.ok(grown < 20 * MIB, `${grown} bytes are kept`);
});

test('an agent gets no further rows once enough bytes were read, and a note says that there are more rows', async () => {
  const fourth = 'x'.repeat(MAX_READ_BYTES / 4);
  const exact = await asking(repeated(fourth, 4)).query(() => 'x');
  assert.deepEqual([exact.rows.length, exact.isCut], [4, false]);
  const over = asking(repeated(fourth, 500));
  const { rows, isCut } = await over.query(() => 'x');
  assert.deepEqual([rows.length, isCut], [4, true]);
  assert.equal(over.seen.made, 5);
});

test('an agent gets no more rows than a result may have, and a note says that there are more rows', async () => {
  const half = 'x'.repeat(MAX_KEPT_CHARS / 2);
  const exact = await asking(repeated(half, 2)).query(String);
  assert.deepEqual([exact.rows.length, exact.isCut], [2, false]);
  const over = await asking([[half], [half], ['x'], ['x']]).query(String);
  assert.deepEqual([over.rows.length, over.isCut], [2, true]);
});

test('a result with more rows than an agent asked for is read to its end, so that its connection can be used again', async () => {
  const exact = await asking(repeated('x', 3)).query(String, 3);
  assert.deepEqual([exact.rows.length, exact.isCut], [3, false]);
  const over = asking(repeated('x', 4));
  const { rows, isCut } = await over.query(String, 3);
  assert.deepEqual([rows.length, isCut, over.seen.isOver], [3, true, true]);
});

test('a description contains as many tables as fit, with shortened names', async () => {
  const long = 'n'.repeat(100_000);
  const { describe } = asking([[null, 't', long, 'text'], ...repeated('x', 2)]);
  const { tables, isCut } = { tables: [], isCut: undefined, ...(await describe()) };
  assert.equal(isCut, false);
  assert.deepEqual(tables[0], {
    schema: null,
    name: 't',
    columns: [{ name: 'n'.repeat(1_000), type: 'text' }],
  });
});
