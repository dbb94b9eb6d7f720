import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { DatabaseLink } from '#src/datasource/connectors/link.ts';
import { LinkPool } from '#src/datasource/query/link-pool.ts';
import type { DatasourceRecord } from '#storage/records/datasources.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const MAX_CONNECTIONS = 8;
const never = new AbortController().signal;

function record(revision = 1, slug = 'sales'): DatasourceRecord {
  const times = { createdAt: '', updatedAt: '' };
  return {
    id: `ds_${slug}`,
    slug,
    kind: 'sqlite',
    name: null,
    revision,
    embedded: true,
    createdBy: 'u',
    ...times,
  };
}

/** Returns a pool, and the names of its links as they are opened and closed. */
function watchedPool(waitMs = 60_000, workers = 1) {
  const seen: string[] = [];
  let opened = 0;
  const open = async (_: WorkspaceId, { slug, revision }: DatasourceRecord): Promise<DatabaseLink> => {
    const name = `${slug}/${revision}#${++opened}`;
    seen.push(`open ${name}`);
    return {
      probe: async () => {},
      query: async function* () {},
      close: async () => void seen.push(`close ${name}`),
    };
  };
  const pool = new LinkPool(open, { waitMs, workers });
  const acquire = (one = record(), signal = never) => pool.acquire(WORKSPACE, one, signal);
  return { pool, seen, acquire };
}

test('a connection whose statement succeeded is reused, and any other is closed', async () => {
  const { seen, acquire } = watchedPool();
  (await acquire()).release(true);
  (await acquire()).release(false);
  await acquire();
  assert.deepEqual(seen, ['open sales/1#1', 'close sales/1#1', 'open sales/1#2']);
});

test('a connection that cannot be reset gets no second statement', async () => {
  let closed = 0;
  const link: DatabaseLink = {
    isSingleUse: true,
    probe: async () => {},
    query: async function* () {},
    close: async () => void closed++,
  };
  const pool = new LinkPool(async () => link);
  (await pool.acquire(WORKSPACE, record(), never)).release(true);
  assert.equal(closed, 1);
});

test('a connection is reset before its next statement, and closed when the reset fails', async () => {
  const seen: string[] = [];
  let canReset = true;
  let opened = 0;
  const pool = new LinkPool(async () => {
    const name = `#${++opened}`;
    seen.push(`open ${name}`);
    return {
      probe: async () => {},
      query: async function* () {},
      async reset() {
        await Promise.resolve();
        if (!canReset) throw new Error('The database cannot do that.');
        seen.push(`reset ${name}`);
      },
      close: async () => void seen.push(`close ${name}`),
    };
  });
  const run = async () => {
    const lease = await pool.acquire(WORKSPACE, record(), never);
    seen.push('statement');
    lease.release(true);
  };
  await run();
  const lease = await pool.acquire(WORKSPACE, record(), never);
  assert.deepEqual(seen, ['open #1', 'statement', 'reset #1']);
  canReset = false;
  lease.release(true);
  await run();
  assert.deepEqual(seen.slice(3), ['close #1', 'open #2', 'statement']);
});

test('concurrent statements have separate connections', async () => {
  const { acquire } = watchedPool();
  const [a, b] = await Promise.all([acquire(), acquire()]);
  assert.notEqual(a.link, b.link);
});

test('a revision never gets a connection of an earlier revision', async () => {
  const { seen, acquire } = watchedPool();
  (await acquire(record(1))).release(true);
  await acquire(record(2));
  assert.deepEqual(seen, ['open sales/1#1', 'open sales/2#2']);
});

test('dropping a datasource closes its idle connections at once and its busy connections when their statements end, and no connections of other datasources', async () => {
  const { pool, seen, acquire } = watchedPool();
  const [idle, used, other] = [await acquire(), await acquire(), await acquire(record(1, 'sales-2'))];
  idle.release(true);
  other.release(true);
  pool.drop(WORKSPACE, 'sales');
  assert.deepEqual(seen.slice(3), ['close sales/1#1']);
  used.release(true);
  assert.deepEqual(seen.slice(3), ['close sales/1#1', 'close sales/1#2']);
});

test('releasing a connection twice counts once', async () => {
  const { acquire, seen } = watchedPool();
  const lease = await acquire();
  lease.release(true);
  lease.release(false);
  await acquire();
  assert.deepEqual(seen, ['open sales/1#1']);
});

test('when all connections are in use a statement waits until one is released', async () => {
  const { acquire, seen } = watchedPool();
  const leases = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => acquire()));
  const waiting = acquire();
  leases[3]?.release(true);
  assert.equal((await waiting).link, leases[3]?.link);
  assert.equal(seen.length, MAX_CONNECTIONS);
});

test('a statement that waits too long fails with busy', async () => {
  const { acquire } = watchedPool(1);
  await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => acquire()));
  await assert.rejects(acquire(), { category: 'busy' });
});

test('each of several workers opens its share of the connections, and at least two connections', async () => {
  for (const [workers, share] of [
    [2, 4],
    [3, 2],
    [16, 2],
  ] as const) {
    const { acquire, seen } = watchedPool(1, workers);
    await Promise.all(Array.from({ length: share }, () => acquire()));
    await assert.rejects(acquire(), { category: 'busy' });
    assert.equal(seen.length, share);
  }
});

test('a statement that is cancelled during its wait takes no connection, and the next statement in line gets the connection', async () => {
  const { acquire } = watchedPool();
  const leases = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => acquire()));
  const stop = new AbortController();
  const cancelled = acquire(record(), stop.signal);
  const next = acquire();
  stop.abort();
  await assert.rejects(cancelled, { category: 'cancelled' });
  leases[0]?.release(true);
  assert.equal((await next).link, leases[0]?.link);
});

test('a connection that cannot be opened does not count as in use', async () => {
  let failing = true;
  const link: DatabaseLink = {
    probe: async () => {},
    query: async function* () {},
    close: async () => {},
  };
  const pool = new LinkPool(async () => {
    if (failing) throw new Error('refused');
    return link;
  });
  for (let i = 0; i < MAX_CONNECTIONS; i++) await assert.rejects(pool.acquire(WORKSPACE, record(), never));
  failing = false;
  assert.equal((await pool.acquire(WORKSPACE, record(), never)).link, link);
});

test('closing the pool closes idle connections', async () => {
  const { pool, seen, acquire } = watchedPool();
  (await acquire()).release(true);
  await pool[Symbol.asyncDispose]();
  assert.deepEqual(seen, ['open sales/1#1', 'close sales/1#1']);
});
