import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { firstIdAt } from '#src/base/ids.ts';
import { defineRecord } from '#storage/codec.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { openSharedStore } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const births = defineRecord<null>('birth', 1);
const others = defineRecord<null>('other', 1);
const HOUR_MS = 3_600_000;
const LISTS = [
  { kind: births, partition: 'ws_1' },
  { kind: others, partition: 'ws_1', prefix: ['ada'] },
];

async function shared(t: TestContext): Promise<Store> {
  return sharedStore(t, (await temporaryStore(t)).path);
}

test('a listed id is greater than all committed ids, in any list and of workers whose clock is ahead', async (t) => {
  const store = await shared(t);
  const ahead = (ms: number) => `${firstIdAt('audit', Date.now() + ms)}${'0'.repeat(16)}`;
  const [first, second] = [ahead(HOUR_MS), ahead(2 * HOUR_MS)];
  store.write((tx) => {
    tx.put(births, null, 'ws_1', first);
    tx.put(others, null, 'ws_1', 'ada', second);
    tx.put(others, null, 'ws_1', 'bob', ahead(3 * HOUR_MS));
    tx.put(births, null, 'ws_1', 'zoe'); // an id that was chosen
  });
  await store.durable();
  const made = newListedId<string>(store, 'audit', LISTS);
  assert.ok(made > second, `${made} ${second}`);
  assert.ok(newListedId<string>(store, 'audit', LISTS) > made);
});

test('ids that two workers make in shared turns are in the order of their commits', async (t) => {
  const { path } = await temporaryStore(t);
  const workers = await Promise.all(
    [1, 2].map(() => openSharedStore(path, assert.fail, async () => undefined)),
  );
  t.after(() => Promise.all(workers.map((store) => store[Symbol.asyncDispose]())));
  const reader = workers[0]!;
  let isOver = false;
  const writing = Promise.all(
    workers.map(async (store) => {
      for (let n = 0; n < 100; n++) {
        store.decide(() =>
          store.write((tx) => tx.put(births, null, 'ws_1', newListedId(store, 'audit', LISTS))),
        );
        await store.durable();
      }
    }),
  ).finally(() => {
    isOver = true;
  });
  const walked: string[] = [];
  const walk = () => {
    reader.refresh();
    const page = { after: walked.at(-1), limit: 1000 };
    for (const { id } of reader.list(births, 'ws_1', [], page)) walked.push(id);
  };
  while (!isOver) {
    walk();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await writing;
  walk();
  const all = [...reader.list(births, 'ws_1', [], { limit: 1000 })].map(({ id }) => id);
  assert.equal(all.length, 200);
  assert.deepEqual(walked, all);
});
