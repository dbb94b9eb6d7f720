import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import type { RootDatabase } from 'lmdb';
import { defineRecord } from '#storage/codec.ts';
import type { StoreKey } from '#storage/keys.ts';
import { Store } from '#storage/store.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const pets = defineRecord<string>('pet', 1);

test('a decision that throws discards its own writes and keeps those of others', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  assert.throws(
    () =>
      store.write((tx) => {
        tx.put(pets, 'dog', 'ws_1', 'p1');
        tx.put(pets, 'owl', 'ws_1', 'p2');
        throw new Error('on second thoughts');
      }),
    /on second thoughts/,
  );
  assert.deepEqual(read(store, 'p1', 'p2'), ['cat', undefined]);
  await store.durable();
  assert.deepEqual(listed(store), { p1: 'cat' });
});

test('a decision that throws and was alone in its turn leaves nothing to commit', async (t) => {
  const { store } = await temporaryStore(t);
  assert.throws(() =>
    store.write((tx) => {
      tx.put(pets, 'dog', 'ws_1', 'p1');
      throw new Error('no');
    }),
  );
  assert.equal(store.durable(), undefined);
});

test('a decision reads its own writes and removals, and its return value is the result', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  const seen = store.write((tx) => {
    tx.put(pets, 'dog', 'ws_1', 'p2');
    const before = [tx.get(pets, 'ws_1', 'p1'), tx.get(pets, 'ws_1', 'p2')];
    tx.remove(pets, 'ws_1', 'p1');
    return [...before, tx.get(pets, 'ws_1', 'p1')];
  });
  assert.deepEqual(seen, ['cat', 'dog', undefined]);
});

test('reads by key see uncommitted records, reads by range only committed ones', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  await store.durable();
  store.write((tx) => {
    tx.remove(pets, 'ws_1', 'p1');
    tx.put(pets, 'dog', 'ws_1', 'p2');
  });
  assert.deepEqual([read(store, 'p1', 'p2'), listed(store)], [[undefined, 'dog'], { p1: 'cat' }]);
  await turnOver(); // the commit is under way
  assert.deepEqual(read(store, 'p1', 'p2'), [undefined, 'dog']);
  await store.durable();
  assert.deepEqual([read(store, 'p1', 'p2'), listed(store)], [[undefined, 'dog'], { p2: 'dog' }]);
});

test('whether a record exists is known before its commit, after it, and after its removal', async (t) => {
  const { store } = await temporaryStore(t);
  const has = () => [store.has(pets, 'ws_1', 'p1'), store.has(pets, 'ws_1', 'p2')];
  assert.deepEqual(has(), [false, false]);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  assert.deepEqual(has(), [true, false]);
  await store.durable();
  assert.deepEqual(has(), [true, false]);
  const { uncommitted } = store.observe(() => {
    store.write((tx) => tx.remove(pets, 'ws_1', 'p1'));
    assert.deepEqual(has(), [false, false]);
  });
  assert.notEqual(uncommitted, undefined);
  await store.durable();
  assert.deepEqual(has(), [false, false]);
});

test('when one turn writes a key several times, the last write counts', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => {
    tx.put(pets, 'cat', 'ws_1', 'p1');
    tx.remove(pets, 'ws_1', 'p1');
    tx.remove(pets, 'ws_1', 'p2');
    tx.put(pets, 'dog', 'ws_1', 'p2');
  });
  store.write((tx) => tx.put(pets, 'cow', 'ws_1', 'p3'));
  store.write((tx) => tx.remove(pets, 'ws_1', 'p3'));
  store.write((tx) => tx.put(pets, 'hen', 'ws_1', 'p3'));
  assert.deepEqual(read(store, 'p1', 'p2', 'p3'), [undefined, 'dog', 'hen']);
  await store.durable();
  assert.deepEqual(
    [read(store, 'p1', 'p2', 'p3'), listed(store)],
    [[undefined, 'dog', 'hen'], { p2: 'dog', p3: 'hen' }],
  );
});

test('a key that is written again before its first commit has ended keeps the newer value', async () => {
  const disk = slowDisk();
  const store = new Store(disk.database, assert.fail);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  const first = store.durable();
  await turnOver();
  store.write((tx) => tx.put(pets, 'dog', 'ws_1', 'p1'));
  const second = store.durable();
  disk.commit();
  await first;
  assert.deepEqual(
    [read(store, 'p1'), store.durable()],
    [['dog'], second],
    'the newer value is not durable yet',
  );
  await turnOver();
  disk.commit();
  await second;
  assert.deepEqual([read(store, 'p1'), store.durable()], [['dog'], undefined]);
});

test('all writes of one turn, with those of its hooks, are one transaction', async (t) => {
  const { store } = await temporaryStore(t);
  const seen: unknown[] = [];
  store.beforeCommit(() => {
    seen.push(listed(store));
    store.write((tx) => tx.put(pets, 'late', 'ws_1', 'p3'));
  });
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  queueMicrotask(() => store.write((tx) => tx.put(pets, 'dog', 'ws_1', 'p2')));
  await store.durable();
  assert.deepEqual([seen, listed(store)], [[{}], { p1: 'cat', p2: 'dog', p3: 'late' }]);
});

test('a turn is durable when it is committed, and not before', async (t) => {
  const { store } = await temporaryStore(t);
  assert.equal(store.durable(), undefined);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  assert.deepEqual(listed(store), {});
  await store.durable();
  assert.deepEqual([listed(store), store.durable()], [{ p1: 'cat' }, undefined]);
});

test('a turn without writes is not durable before the preceding turn is', async (t) => {
  const { store } = await temporaryStore(t);
  const order: string[] = [];
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  void store.openTurn().durable.then(() => order.push('written', ...Object.keys(listed(store))));
  await turnOver();
  const empty = store.openTurn().durable;
  void empty.then(() => order.push('empty'));
  await empty;
  assert.deepEqual(order, ['written', 'p1', 'empty']);
});

test('turns become durable in order', async (t) => {
  const { store } = await temporaryStore(t);
  const order: number[] = [];
  const all: Promise<unknown>[] = [];
  for (let turn = 0; turn < 20; turn++) {
    const size = turn % 2 === 0 ? 200_000 : 1;
    if (turn % 5 !== 4) store.write((tx) => tx.put(pets, 'x'.repeat(size), 'ws_1', `p${turn}`));
    all.push(store.openTurn().durable.then(() => order.push(turn)));
    await turnOver();
  }
  await Promise.all(all);
  assert.deepEqual(order, [...Array(20).keys()]);
});

test('a turn that expects a later write is committed with it in one transaction', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  const { first, flushed } = await waitingTurn(store);
  store.write((tx) => tx.put(pets, 'dog', 'ws_1', 'p2'));
  await store.durable();
  await first;
  assert.deepEqual([flushed.length, listed(store)], [1, { p1: 'cat', p2: 'dog' }]);
});

test('a turn that expects a later write is committed without it after a while', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  const { first } = await waitingTurn(store);
  t.mock.timers.tick(5);
  await first;
  assert.deepEqual(listed(store), { p1: 'cat' });
});

test('a turn does not wait for an expected write that it already contains', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  store.commitWithNextTurn(() => true);
  store.commitWithNextTurn(() => false);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  await store.durable();
  assert.deepEqual(listed(store), { p1: 'cat' });
});

test('replies of later turns do not wait until an expected write comes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { store } = await temporaryStore(t);
  await waitingTurn(store);
  await store.durable();
  assert.deepEqual(listed(store), { p1: 'cat' });
  await waitingTurn(store, 'p2');
  await store.observe(() => read(store, 'p2')).uncommitted;
  assert.deepEqual(listed(store), { p1: 'cat', p2: 'cat' });
});

test('closing a store commits a turn that expects a later write', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stores = await temporaryStore(t);
  await waitingTurn(stores.store);
  assert.deepEqual(listed(await stores.reopen()), { p1: 'cat' });
});

test('closing a store commits all earlier writes', async (t) => {
  const stores = await temporaryStore(t);
  stores.store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  void stores.store.durable()?.then(() => stores.store.write((tx) => tx.put(pets, 'dog', 'ws_1', 'p2')));
  const store = await stores.reopen();
  assert.deepEqual(listed(store), { p1: 'cat', p2: 'dog' });
});

test('a key that LMDB cannot store is refused when it is written, and harms no commit', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  const long = 'x'.repeat(1_978);
  assert.throws(
    () => store.write((tx) => tx.put(pets, 'dog', 'ws_1', long)),
    /A key fits into a page of LMDB\. Broken by: the kind pet/,
  );
  assert.throws(() => store.write((tx) => tx.remove(pets, 'ws_1', long)), /A key fits into a page of LMDB/);
  const longest = '\u6f22'.repeat(652);
  store.write((tx) => tx.put(pets, 'owl', 'ws_1', longest));
  await store.durable();
  assert.deepEqual(listed(store), { p1: 'cat', [longest]: 'owl' });
});

test('a failed commit is reported as fatal once, rejects all waiting promises, and is followed by no other', async () => {
  const full = new Error('MDB_MAP_FULL');
  const fatal: Error[] = [];
  let batches = 0;
  const database = {
    getBinary: () => undefined,
    batch: () => {
      batches++;
      return Promise.reject(full);
    },
  };
  const store = new Store(database as unknown as RootDatabase<Buffer, StoreKey>, (error) =>
    fatal.push(error),
  );
  const waits: Promise<unknown>[] = [];
  for (let turn = 0; turn < 3; turn++) {
    if (turn !== 1) store.write((tx) => tx.put(pets, 'cat', 'ws_1', `p${turn}`));
    waits.push(store.openTurn().durable);
    await turnOver();
    await turnOver();
  }
  const outcomes = await Promise.allSettled(waits);
  assert.equal(fatal.length, 1);
  assert.deepEqual(
    outcomes,
    waits.map(() => ({ status: 'rejected', reason: fatal[0] })),
  );
  assert.deepEqual([fatal[0]?.cause, batches], [full, 1]);
});

test('a commit that throws immediately is equally fatal', async () => {
  const broken = new Error('no such database');
  const fatal: Error[] = [];
  const database = {
    batch: () => {
      throw broken;
    },
  };
  const store = new Store(database as unknown as RootDatabase<Buffer, StoreKey>, (error) =>
    fatal.push(error),
  );
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', 'p1'));
  await assert.rejects(store.openTurn().durable, {
    message: /^The store cannot be written: no such database\. /,
  });
  assert.deepEqual(
    fatal.map(({ cause }) => cause),
    [broken],
  );
});

function read(store: Store, ...ids: string[]): (string | undefined)[] {
  return ids.map((id) => store.get(pets, 'ws_1', id));
}

/** Returns the committed records. */
function listed(store: Store): Record<string, string> {
  const entries = [...store.list(pets, 'ws_1', [], { limit: 1_000 })];
  return Object.fromEntries(entries.map(({ id, value }) => [id, value]));
}

/** A database that commits only on request. */
function slowDisk() {
  const values = new Map<string, Buffer>();
  const waiting: (() => void)[] = [];
  const database = {
    getBinary: (key: StoreKey) => values.get(key.join()),
    put: (key: StoreKey, bytes: Buffer) => values.set(key.join(), bytes),
    batch: (write: () => void) =>
      new Promise<void>((resolve) => {
        waiting.push(() => {
          write();
          resolve();
        });
      }),
  };
  const commit = () => waiting.shift()?.();
  return { database: database as unknown as RootDatabase<Buffer, StoreKey>, commit };
}

/** Writes a record in a turn that expects a later write, and returns once that turn is over. */
async function waitingTurn(store: Store, id = 'p1') {
  const flushed: number[] = [];
  store.onFlushed((ms) => flushed.push(ms));
  store.commitWithNextTurn(() => true);
  store.write((tx) => tx.put(pets, 'cat', 'ws_1', id));
  const first = store.durable();
  for (let turn = 0; turn < 10; turn++) await turnOver();
  assert.ok(!Object.hasOwn(listed(store), id));
  return { first, flushed };
}
