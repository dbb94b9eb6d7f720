import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_PASSED_ENTRIES } from '#storage/lists/page-builder.ts';
import { slicedListing } from '#storage/lists/sliced-listing.ts';
import { runRecords } from '#storage/records/runs.ts';
import { everythingIsOnDisk } from '#test/support/store/stored-already.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

/** A list of `count` numbers whose ids are in order; `read` has the id after which each slice began. */
function numbers(count: number) {
  const read: (string | undefined)[] = [];
  const entriesAfter = function* (after: string | undefined) {
    read.push(after);
    for (let n = after === undefined ? 0 : Number(after) + 1; n < count; n++)
      yield { id: String(n), value: n };
  };
  return { read, entriesAfter };
}

/** Takes longer than a slice may. */
function dawdle(): void {
  const endMs = performance.now() + 5;
  while (performance.now() < endMs);
}

test('a page lets other work run between its slices, and has every item once', async () => {
  const { entriesAfter, read } = numbers(6);
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const list = await slicedListing(everythingIsOnDisk, {
    workspaceId: 'ws_1',
    page: { limit: 10 },
    entriesAfter,
    itemOf: (n) => {
      dawdle();
      return n;
    },
  });
  clearImmediate(next);
  assert.deepEqual(list, { items: [0, 1, 2, 3, 4, 5], nextCursor: null });
  assert.deepEqual(read, [undefined, '0', '1', '2', '3', '4', '5']);
  assert.ok(turns >= 3, `${turns} turns`);
});

test('a page that is read in one step resolves within the same turn of the event loop', async (t) => {
  t.mock.method(performance, 'now', () => 0); // however long the machine takes
  let isRead = false;
  const list = slicedListing(
    { ...everythingIsOnDisk, durable: () => assert.fail('it is known what such a page has read') },
    { workspaceId: 'ws_1', page: { limit: 2 }, entriesAfter: numbers(2).entriesAfter, itemOf: (n) => n },
  ).then((page) => {
    isRead = true;
    return page;
  });
  await Promise.resolve();
  await Promise.resolve();
  assert.equal(isRead, true);
  assert.deepEqual(await list, { items: [0, 1], nextCursor: null });
});

test('a full page has a cursor for the next page, and the last page has none', async () => {
  const list = (after: string | undefined, limit: number) =>
    slicedListing(everythingIsOnDisk, {
      workspaceId: 'ws_1',
      page: { after, limit },
      entriesAfter: numbers(5).entriesAfter,
      itemOf: (n) => {
        dawdle();
        return n;
      },
    });
  assert.deepEqual(await list(undefined, 4), { items: [0, 1, 2, 3], nextCursor: '3' });
  assert.deepEqual(await list('3', 4), { items: [4], nextCursor: null });
  assert.deepEqual(await list(undefined, 5), { items: [0, 1, 2, 3, 4], nextCursor: null });
  assert.deepEqual(await list('4', 5), { items: [], nextCursor: null });
});

test('all slices of a page together skip as many entries that are not items as one page may, or any number', async () => {
  const page = (maxPassed?: number) => {
    const list = numbers(3 * MAX_PASSED_ENTRIES);
    const only = 3 * MAX_PASSED_ENTRIES - 1;
    const itemOf = (n: number) => {
      if (n % 500 === 0) dawdle();
      return n === only ? n : undefined;
    };
    const bound = maxPassed === undefined ? {} : { maxPassed };
    return slicedListing(everythingIsOnDisk, {
      workspaceId: 'ws_1',
      page: { limit: 1 },
      entriesAfter: list.entriesAfter,
      itemOf,
      ...bound,
    });
  };
  assert.deepEqual(await page(), { items: [], nextCursor: String(MAX_PASSED_ENTRIES - 1) });
  const all = await page(Number.POSITIVE_INFINITY);
  assert.deepEqual(all, { items: [3 * MAX_PASSED_ENTRIES - 1], nextCursor: null });
});

test('a page of several slices reports when everything it read is on disk, and reading stops when the client has left', async () => {
  let commit = () => {};
  const committed = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const leaving = new AbortController();
  const { entriesAfter, read } = numbers(100);
  let isTold = false;
  const list = slicedListing(
    { ...everythingIsOnDisk, durable: () => committed },
    {
      workspaceId: 'ws_1',
      page: { limit: 100, signal: leaving.signal },
      entriesAfter,
      itemOf: (n) => {
        dawdle();
        if (n === 2) leaving.abort();
        return n;
      },
    },
  ).then(() => {
    isTold = true;
  });
  while (!leaving.signal.aborted) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.deepEqual([isTold, read.length], [false, 3]);
  commit();
  await list;
});

test('a page of one step, begun by code that has waited before, resolves once everything in it is on disk', async (t) => {
  const { store } = await temporaryStore(t);
  const run = { sessionId: 'nb_1', kind: 'notebook', status: 'running', document: new Uint8Array() } as const;
  await Promise.resolve(); // nobody observes the reads any more
  store.write((tx) => tx.put(runRecords, run, 'ws_1', '0'));
  const status = (id: number) => store.get(runRecords, 'ws_1', String(id))?.status;
  const list = await slicedListing(store, {
    workspaceId: 'ws_1',
    page: { limit: 2 },
    entriesAfter: numbers(1).entriesAfter,
    itemOf: status,
  });
  assert.deepEqual(list.items, ['running']);
  assert.equal(store.observe(() => status(0)).uncommitted, undefined);
});
