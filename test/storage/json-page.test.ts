import assert from 'node:assert/strict';
import test from 'node:test';
import { listingOf } from '#storage/lists/listing.ts';
import { MAX_PAGE_BYTES, MAX_PASSED_ENTRIES } from '#storage/lists/page-builder.ts';
import { slicedJsonPage } from '#storage/lists/sliced-listing.ts';
import { everythingIsOnDisk } from '#test/support/store/stored-already.ts';

test('a page has the first entries up to its limit, and a cursor only if there are more', async () => {
  const items = (...ids: string[]) => ids.map((id) => ({ id }));
  assert.deepEqual(await pages('a b c', 4), { items: items('a', 'b', 'c'), nextCursor: null });
  assert.deepEqual(await pages('a b c', 3), { items: items('a', 'b', 'c'), nextCursor: null });
  assert.deepEqual(await pages('a b c', 2), { items: items('a', 'b'), nextCursor: 'b' });
  assert.deepEqual(await pages('a b c', 1), { items: items('a'), nextCursor: 'a' });
  assert.deepEqual(await pages('', 3), { items: [], nextCursor: null });
});

test('a page ends early only if another entry would make it too large', async () => {
  assert.deepEqual(await sizes([MAX_PAGE_BYTES - 10, 10], 5), [2, null]);
  assert.deepEqual(await sizes([MAX_PAGE_BYTES - 10, 11], 5), [1, 'e0']);
  assert.deepEqual(await sizes([10, MAX_PAGE_BYTES - 20, 10, 3], 5), [3, 'e2']);
});

test('an entry that alone is too large gets its own page', async () => {
  assert.deepEqual(await sizes([MAX_PAGE_BYTES + 1, 10], 5), [1, 'e0']);
  assert.deepEqual(await sizes([10, MAX_PAGE_BYTES + 1], 5), [1, 'e0']);
});

test('a page reads only one entry more than it returns', () => {
  let read = 0;
  const entries = function* () {
    for (;;) yield { id: `e${read++}`, value: null };
  };
  listingOf(entries(), 3, () => 'item');
  assert.equal(read, 4);
});

test('a page skips a bounded number of entries that are not items, and its cursor continues after them', () => {
  let read = 0;
  const entries = function* () {
    for (;;) yield { id: `e${read++}`, value: null };
  };
  const isItem = (id: string) => id === 'e3' || id === `e${MAX_PASSED_ENTRIES + 5}`;
  const page = listingOf(entries(), 3, (_, id) => (isItem(id) ? id : undefined));
  assert.deepEqual(page, { items: ['e3'], nextCursor: `e${MAX_PASSED_ENTRIES}` });
  assert.equal(read, MAX_PASSED_ENTRIES + 2);
});

/** Returns the entries of a list after an id. */
function entriesOf<T>(entries: readonly { readonly id: string; readonly value: T }[]) {
  return (after: string | undefined) => entries.slice(entries.findIndex(({ id }) => id === after) + 1);
}

async function pages(ids: string, limit: number): Promise<unknown> {
  const entries = ids.split(' ').filter(Boolean);
  const page = await slicedJsonPage(everythingIsOnDisk, {
    workspaceId: 'ws_1',
    page: { limit },
    entriesAfter: entriesOf(entries.map((id) => ({ id, value: id }))),
    itemOf: (value, id) => {
      assert.equal(value, id);
      return Buffer.from(JSON.stringify({ id }));
    },
  });
  return JSON.parse(Buffer.from(page).toString());
}

/** Returns how many entries of these sizes fit into a page, and its cursor. */
async function sizes(bytes: readonly number[], limit: number): Promise<[number, string | null]> {
  const page = await slicedJsonPage(everythingIsOnDisk, {
    workspaceId: 'ws_1',
    page: { limit },
    entriesAfter: entriesOf(bytes.map((value, i) => ({ id: `e${i}`, value }))),
    itemOf: (value: number) => Buffer.from(`"${'x'.repeat(value - 2)}"`),
  });
  const { items, nextCursor } = JSON.parse(Buffer.from(page).toString());
  return [items.length, nextCursor];
}
