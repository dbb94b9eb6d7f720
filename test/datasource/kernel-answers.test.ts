import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DatasourceFailure } from '#src/datasource/failure.ts';
import { KernelQueryHandler } from '#src/datasource/query/kernel-query-handler.ts';
import type { Queries } from '#src/datasource/query/queries.ts';

test('errors repeat only the beginning of a text that a kernel or a database sends', async () => {
  const failing = {
    kindOf() {
      throw new DatasourceFailure('query', undefined, 'x'.repeat(1_000_000));
    },
  };
  using handler = new KernelQueryHandler({
    queries: failing as unknown as Queries,
    origin: { by: 'notebook', sessionId: 'nb_one', tokenId: null },
    reader: () => ({}) as never,
    slugs: () => ['known'],
  });
  const answers = [
    await handler.call('describe', { slug: 's'.repeat(1_000_000) }),
    await handler.call('execute', { cursor: 1, slug: 's'.repeat(1_000_000), sql: '' }),
    await handler.call('describe', { slug: 'known' }),
  ];
  for (const parts of answers) {
    const { error } = JSON.parse(parts.join('')) as { error: { message: string } };
    assert.ok(error.message.length < 5000 && error.message.includes('…'), error.message.slice(0, 100));
  }
});

/** Queries with one result of two batches, which can be packed. */
function packedQueries(ended: () => void) {
  const batch = (count: number) => ({
    columns: [{ name: 'n', type: 'integer' as const }],
    rows: [],
    rowCount: count,
    json: () => Buffer.from(`["rows of ${count}"]`),
    packed: () => ({ forms: ['integer' as const], parts: [Buffer.from(`columns of ${count}`)] }),
  });
  return {
    async *run() {
      try {
        yield batch(1);
        yield batch(2);
        yield batch(3);
      } finally {
        ended();
      }
    },
  } as unknown as Queries;
}

function handlerOf(queries: Queries) {
  return new KernelQueryHandler({
    queries,
    origin: { by: 'notebook', sessionId: 'nb_one', tokenId: null },
    reader: () => ({}) as never,
    slugs: () => ['known'],
  });
}

/** The answer in words: JSON, or the JSON of an answer in columns and its first part. */
function said(parts: readonly (string | Uint8Array)[]): string {
  if (typeof parts[0] === 'string') return parts.map((part) => String(part)).join('');
  const [start, head, ...arrays] = parts.map((part) => Buffer.from(part));
  assert.equal(start?.readUInt32LE(1), head?.length);
  return `${start?.toString('latin1', 0, 1)} ${head} ${arrays.join('')}`;
}

test('a kernel that asks for columns gets the first batch again, and the others once', async () => {
  let ends = 0;
  using handler = handlerOf(
    packedQueries(() => {
      ends++;
    }),
  );
  const answers = [
    await handler.call('execute', { cursor: 1, slug: 'known', sql: 'select', parameters: [] }),
  ];
  for (let i = 0; i < 5; i++) answers.push(await handler.call('fetch', { cursor: 1, form: 'columns' }));
  assert.deepEqual(answers.map(said), [
    '{"more":true,"columns":[{"name":"n","type":"integer"}],"packs":true,"rows":["rows of 1"]}',
    'C {"more":true,"count":1,"forms":["integer"]} columns of 1',
    'C {"more":true,"count":2,"forms":["integer"]} columns of 2',
    'C {"more":true,"count":3,"forms":["integer"]} columns of 3',
    '{}',
    '{"error":{"kind":"InterfaceError","message":"The result is closed."}}',
  ]);
  assert.equal(ends, 1);
});

test('a kernel may change between rows and columns at each batch, and an unknown form is rows', async () => {
  using handler = handlerOf(packedQueries(() => {}));
  await handler.call('execute', { cursor: 1, slug: 'known', sql: 'select', parameters: [] });
  assert.match(said(await handler.call('fetch', { cursor: 1, form: ['columns'] })), /rows of 2/);
  assert.match(said(await handler.call('fetch', { cursor: 1, form: 'columns' })), /columns of 3/);
});

test('closing a result that is read by columns ends its statement', async () => {
  let ends = 0;
  using handler = handlerOf(
    packedQueries(() => {
      ends++;
    }),
  );
  await handler.call('execute', { cursor: 1, slug: 'known', sql: 'select', parameters: [] });
  await handler.call('fetch', { cursor: 1, form: 'columns' });
  await handler.call('close', { cursor: 1 });
  assert.equal(ends, 1);
});
