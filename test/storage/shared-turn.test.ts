import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import type { Store } from '#storage/store.ts';
import { childScript } from '#test/support/store/child-script.ts';
import { sharedNumbers as numbers } from '#test/support/store/shared-store-process.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

/** Opens a store as two workers do, each in an environment of its own. */
async function twoStores(t: TestContext): Promise<{ first: Store; second: Store; path: string }> {
  const { path } = await temporaryStore(t);
  const open = async () => {
    const store = await sharedStore(t, path);
    return store;
  };
  return { first: await open(), second: await open(), path };
}

const read = (store: Store, id: string) => store.get(numbers, 'ws_1', id);
const put = (store: Store, id: string, value: number) =>
  store.write((tx) => tx.put(numbers, value, 'ws_1', id));
/** Runs a decision in a shared turn and resolves with its result. */
const decided = <T>(store: Store, decision: () => T) =>
  new Promise<T>((resolve) => store.decide(() => resolve(decision())));

test('increments by several processes in shared turns are never lost', async (t) => {
  const { first, path } = await twoStores(t);
  const others = [1, 2, 3].map(() => childScript(t, 'shared-store-process', path, 'count', '100'));
  for (const other of others) assert.equal(await other.line(), 'counted');
  first.refresh();
  assert.equal(read(first, 'n'), 300);
});

test('a process that dies in a shared turn leaves none of its writes, and others continue', async (t) => {
  const { first, path } = await twoStores(t);
  process.env.FAULT_POINT = 'turn.shared:3';
  t.after(() => delete process.env.FAULT_POINT);
  const other = childScript(t, 'shared-store-process', path, 'count', '100');
  await assert.rejects(other.line());
  assert.equal(await decided(first, () => read(first, 'n')), 10);
});

test('a shared turn reads the commits of other workers, without a refresh', async (t) => {
  const { first, second } = await twoStores(t);
  const later = decided(first, () => read(first, 'a'));
  put(second, 'a', 1);
  await second.durable();
  await later;
  put(second, 'a', 2);
  await second.durable();
  assert.equal(await decided(first, () => read(first, 'a')), 2);
});

test('a shared turn is one commit with the earlier writes of its process, and commits nothing when it only reads', async (t) => {
  const { first } = await twoStores(t);
  const times: number[] = [];
  first.onFlushed((ms) => times.push(ms));
  put(first, 'a', 1);
  await decided(first, () => put(first, 'b', 2));
  await first.durable();
  assert.equal(times.length, 1);
  await decided(first, () => read(first, 'b'));
  await first.durable();
  assert.equal(times.length, 1);
});

test('a shared turn reads and lists the earlier writes of its process, from any turn', async (t) => {
  const { first } = await twoStores(t);
  put(first, 'a', 1);
  await turnOver(); // its commit is under way
  put(first, 'b', 2);
  const seen = decided(first, () => [
    read(first, 'a'),
    read(first, 'b'),
    read(first, 'c'),
    [...first.list(numbers, 'ws_1', [], { limit: 10 })].map(({ id }) => id),
  ]);
  await turnOver();
  put(first, 'c', 3); // in a later turn, and before the decision
  assert.deepEqual(await seen, [1, 2, 3, ['a', 'b', 'c']]);
});

test('the writes of a shared turn are in one commit with those of the turn that requested it', async (t) => {
  const { first, second } = await twoStores(t);
  put(first, 'a', 1);
  const decision = decided(first, () => put(first, 'b', 2));
  await decision;
  assert.equal(read(first, 'b'), 2, 'its own process sees it at once');
  await first.durable();
  second.refresh();
  assert.deepEqual([read(second, 'a'), read(second, 'b')], [1, 2]);
  assert.equal(first.durable(), undefined);
});

test('a decision requested within a shared turn is made in that turn', async (t) => {
  const { first } = await twoStores(t);
  const order: string[] = [];
  await decided(first, () => {
    order.push('outer');
    first.decide(() => order.push('inner'));
    order.push('outer again');
  });
  assert.deepEqual(order, ['outer', 'inner', 'outer again']);
});

test('actors and other hooks save their changes of a shared turn in its commit', async (t) => {
  const { first, second } = await twoStores(t);
  let moved: number | undefined;
  first.beforeCommit(() => {
    if (moved !== undefined) put(first, 'moved', moved);
    moved = undefined;
  });
  await decided(first, () => {
    moved = 7;
    first.openTurn();
  });
  await first.durable();
  second.refresh();
  assert.equal(read(second, 'moved'), 7);
});

test('in a store of one process the present turn is the shared turn', async (t) => {
  const { store } = await temporaryStore(t);
  let seen: number | undefined;
  put(store, 'a', 1);
  store.decide(() => {
    seen = read(store, 'a');
    put(store, 'b', 2);
  });
  assert.deepEqual([seen, read(store, 'b')], [1, 2]);
  await store.durable();
});

test('a decision that throws is reported, and harms neither the store nor the other decisions', async (t) => {
  const { first, second } = await twoStores(t);
  const { store: alone } = await temporaryStore(t);
  for (const store of [first, alone]) {
    const reported: unknown[] = [];
    store.onFailedDecision((error) => reported.push((error as Error).message));
    put(store, 'a', 1);
    store.decide(() => {
      throw new Error('a record is damaged');
    });
    await decided(store, () => put(store, 'b', 2));
    await store.durable();
    assert.deepEqual([reported, read(store, 'a'), read(store, 'b')], [['a record is damaged'], 1, 2]);
  }
  second.refresh();
  assert.deepEqual([read(second, 'a'), read(second, 'b')], [1, 2]);
});
