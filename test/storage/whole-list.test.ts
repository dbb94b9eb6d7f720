import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_PAGE_BYTES, MAX_PASSED_ENTRIES } from '#storage/listing.ts';
import { wholeListOf } from '#storage/whole-list.ts';

const { signal } = new AbortController();
const everythingIsOnDisk = { durable: () => undefined };

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

const parse = (bytes: Uint8Array): { items: unknown[]; nextCursor: string | null } =>
  JSON.parse(Buffer.from(bytes).toString());

test('a whole list lets the event loop turn between slices, and has every item once', async () => {
  const { entriesAfter, read } = numbers(6);
  let turns = 0;
  const count = () => {
    turns++;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  const list = await wholeListOf(
    everythingIsOnDisk,
    { after: undefined, limit: 10, signal },
    entriesAfter,
    (n) => {
      dawdle();
      return String(n);
    },
  );
  clearImmediate(next);
  assert.deepEqual(parse(list), { items: [0, 1, 2, 3, 4, 5], nextCursor: null });
  assert.deepEqual(read, [undefined, '0', '1', '2', '3', '4', '5']);
  assert.ok(turns >= 6, `${turns} turns`);
});

test('a whole list ends at its limit with a cursor that leads on, and at its end without one', async () => {
  const list = async (after: string | undefined, limit: number) =>
    parse(await wholeListOf(everythingIsOnDisk, { after, limit, signal }, numbers(5).entriesAfter, String));
  assert.deepEqual(await list(undefined, 4), { items: [0, 1, 2, 3], nextCursor: '3' });
  assert.deepEqual(await list('3', 4), { items: [4], nextCursor: null });
  assert.deepEqual(await list(undefined, 5), { items: [0, 1, 2, 3, 4], nextCursor: null });
  assert.deepEqual(await list('4', 5), { items: [], nextCursor: null });
});

test('a whole list passes over any number of entries that are no items', async () => {
  const { entriesAfter } = numbers(3 * MAX_PASSED_ENTRIES);
  const request = { after: undefined, limit: 1, signal };
  const only = 3 * MAX_PASSED_ENTRIES - 1;
  const list = await wholeListOf(everythingIsOnDisk, request, entriesAfter, (n) =>
    n === only ? String(n) : undefined,
  );
  assert.deepEqual(parse(list), { items: [only], nextCursor: null });
});

test('a whole list that would be too large ends early, with a cursor', async () => {
  const half = JSON.stringify('x'.repeat(MAX_PAGE_BYTES / 2 - 2));
  const request = { after: undefined, limit: 10, signal };
  const list = await wholeListOf(everythingIsOnDisk, request, numbers(3).entriesAfter, () => half);
  assert.deepEqual([parse(list).items.length, parse(list).nextCursor], [2, '1']);
});

test('a whole list is told when what it has read is on disk, and nobody reads on for a client that has left', async () => {
  let commit = () => {};
  const committed = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const leaving = new AbortController();
  const { entriesAfter, read } = numbers(100);
  let isTold = false;
  const request = { after: undefined, limit: 100, signal: leaving.signal };
  const list = wholeListOf({ durable: () => committed }, request, entriesAfter, (n) => {
    dawdle();
    if (n === 2) leaving.abort();
    return String(n);
  }).then(() => {
    isTold = true;
  });
  while (!leaving.signal.aborted) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.deepEqual([isTold, read.length], [false, 3]);
  commit();
  await list;
});
