import assert from 'node:assert/strict';
import test from 'node:test';
import { PAGE_LIMIT_BYTES, pageOf } from '#src/runs/page.ts';

test('a page has the first entries up to its limit, and says where it goes on only when it does', () => {
  const items = (...ids: string[]) => ids.map((id) => ({ id }));
  assert.deepEqual(pages('a b c', 4), { items: items('a', 'b', 'c'), nextCursor: null });
  assert.deepEqual(pages('a b c', 3), { items: items('a', 'b', 'c'), nextCursor: null });
  assert.deepEqual(pages('a b c', 2), { items: items('a', 'b'), nextCursor: 'b' });
  assert.deepEqual(pages('a b c', 1), { items: items('a'), nextCursor: 'a' });
  assert.deepEqual(pages('', 3), { items: [], nextCursor: null });
});

test('a page ends early when another entry would make it too large, and not before', () => {
  assert.deepEqual(sizes([PAGE_LIMIT_BYTES - 10, 10], 5), [2, null]);
  assert.deepEqual(sizes([PAGE_LIMIT_BYTES - 10, 11], 5), [1, 'e0']);
  assert.deepEqual(sizes([10, PAGE_LIMIT_BYTES - 20, 10, 3], 5), [3, 'e2']);
});

test('an entry that is too large by itself is a page of its own', () => {
  assert.deepEqual(sizes([PAGE_LIMIT_BYTES + 1, 10], 5), [1, 'e0']);
  assert.deepEqual(sizes([10, PAGE_LIMIT_BYTES + 1], 5), [1, 'e0']);
});

test('no more entries are read than the page and the one that shows there are others', () => {
  let read = 0;
  const entries = function* () {
    for (;;) yield { id: `e${read++}`, value: null };
  };
  pageOf(entries(), 3, () => Buffer.from('{}'));
  assert.equal(read, 4);
});

function pages(ids: string, limit: number): unknown {
  const entries = ids.split(' ').filter(Boolean);
  const page = pageOf(
    entries.map((id) => ({ id, value: id })),
    limit,
    (value, id) => {
      assert.equal(value, id);
      return Buffer.from(JSON.stringify({ id }));
    },
  );
  return JSON.parse(Buffer.from(page).toString());
}

/** How many entries of these sizes stand in a page, and its cursor. */
function sizes(bytes: readonly number[], limit: number): [number, string | null] {
  const page = pageOf(
    bytes.map((value, i) => ({ id: `e${i}`, value })),
    limit,
    (value) => Buffer.from(`"${'x'.repeat(value - 2)}"`),
  );
  const { items, nextCursor } = JSON.parse(Buffer.from(page).toString());
  return [items.length, nextCursor];
}
