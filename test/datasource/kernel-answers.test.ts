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
