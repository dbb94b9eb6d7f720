import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import { type Permit, WorkspacePermits } from '#storage/workspace-permits.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1';
const REFUSED = new Error('refused');

/** Workers that begin pieces of work, each with a store of its own on the same files. */
async function startWorkers(t: TestContext, size: number, max: number | { limit: number }) {
  const limits = typeof max === 'number' ? { limit: max } : max;
  const { path } = await temporaryStore(t);
  const living = new Set(Array.from({ length: size }, (_, n) => `worker-${n}`));
  const seen = { most: 0, collections: 0 };
  const open = async (own: string) => {
    const store = await sharedStore(t, path);
    let things = 0;
    let commits = 0;
    store.onFlushed(() => void commits++);
    const permits = new WorkspacePermits({
      store,
      kind: 'thing',
      limit: () => limits.limit,
      workers: size,
      own,
      livesElsewhere: (worker) => worker !== own && living.has(worker),
      inUse: (workspaceId) => (workspaceId === WORKSPACE ? things : 0),
      async collect(workspaceId) {
        seen.collections++;
        const others = workers.filter((worker) => worker.own !== own && living.has(worker.own));
        await Promise.all(others.map((worker) => worker.permits.giveBack(workspaceId)));
      },
      refusal: () => REFUSED,
    });
    return {
      own,
      permits,
      durable: () => store.durable(),
      get commits() {
        return commits;
      },
      get things() {
        return things;
      },
      /** Resolves with whether the thing has begun. */
      async begin(prepare: () => Promise<void> = async () => undefined): Promise<boolean> {
        try {
          using _permit: Permit = await permits.take(WORKSPACE);
          await prepare();
          things++;
          const all = workers.reduce((sum, worker) => sum + worker.things, 0);
          seen.most = Math.max(seen.most, all);
          return true;
        } catch (error) {
          if (error === REFUSED) return false;
          throw error;
        }
      },
      end: (count = 1) => {
        things -= count;
      },
    };
  };
  const workers = await Promise.all([...living].map(open));
  return { workers, living, seen };
}

test('if fifty objects begin at once in three workers, exactly as many succeed as the limit allows, in every repetition', async (t) => {
  for (const limit of [1, 2, 10, 45]) {
    const { workers, seen } = await startWorkers(t, 3, limit);
    for (let round = 0; round < 5; round++) {
      const began = await Promise.all(
        Array.from({ length: 50 }, (_, n) => workers[(n * (round + 1)) % 3]!.begin(turnOver)),
      );
      assert.equal(began.filter(Boolean).length, limit);
      for (const worker of workers) worker.end(worker.things);
    }
    assert.equal(seen.most, limit);
  }
});

test('the limit is never exceeded while things begin and end in all workers', async (t) => {
  const limit = 20;
  const { workers, seen } = await startWorkers(t, 3, limit);
  let refused = 0;
  await Promise.all(
    workers.map(async (worker, number) => {
      for (let n = 0; n < 150; n++) {
        const beginning = worker.begin(n % 4 === 0 ? turnOver : undefined);
        if (n % 3 === number) await turnOver();
        if (!(await beginning)) refused++;
        if (worker.things > 9) worker.end(worker.things - 2);
      }
    }),
  );
  assert.ok(seen.most <= limit, String(seen.most));
  assert.ok(refused > 0, 'they came to the limit');
});

test('far below the limit no other worker is asked, and most objects begin without a commit', async (t) => {
  const { workers, seen } = await startWorkers(t, 3, 1000);
  const [worker] = workers;
  for (let n = 0; n < 100; n++) assert.equal(await worker!.begin(), true);
  await worker!.durable();
  assert.equal(seen.collections, 0);
  assert.equal(worker!.commits, 1);
});

test('an unused permit becomes available again, to any worker', async (t) => {
  const { workers } = await startWorkers(t, 2, 1);
  const [first, second] = workers;
  await assert.rejects(
    first!.begin(async () => {
      assert.equal(await second!.begin(), false, 'it is in use until then');
      throw new Error('it could not begin');
    }),
  );
  assert.equal(await second!.begin(), true);
  assert.equal(await first!.begin(), false);
  second!.end();
  assert.equal(await first!.begin(), true);
});

test('the permits of a dead worker become available again', async (t) => {
  const { workers, living } = await startWorkers(t, 2, 3);
  const [first, second] = workers;
  for (let n = 0; n < 3; n++) await first!.begin();
  assert.equal(await second!.begin(), false);
  living.delete(first!.own);
  assert.deepEqual(await Promise.all([1, 2, 3, 4].map(() => second!.begin())), [true, true, true, false]);
});

test('the permits of a deleted workspace are released without a request', async (t) => {
  const { workers, seen } = await startWorkers(t, 2, 3);
  const [first, second] = workers;
  for (let n = 0; n < 3; n++) await first!.begin();
  first!.end(3);
  first!.permits.forget(WORKSPACE);
  await first!.durable();
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => second!.begin())), [true, true, true]);
  assert.equal(seen.collections, 0);
});

test('a limit that is set, lowered or raised later applies to all workers from then on, and ends nothing', async (t) => {
  const max = { limit: 0 };
  const { workers } = await startWorkers(t, 3, max);
  const total = () => workers.reduce((sum, { things }) => sum + things, 0);
  const change = async (limit: number) => {
    max.limit = limit;
    await Promise.all(workers.map(({ permits }) => permits.settle(WORKSPACE)));
  };
  const fifty = async () => {
    const began = await Promise.all(Array.from({ length: 50 }, (_, n) => workers[n % 3]!.begin(turnOver)));
    return began.filter(Boolean).length;
  };
  assert.equal(await fifty(), 50, 'there is no limit');
  await change(30);
  assert.equal(await fifty(), 0, 'what has begun without a limit counts');
  workers[1]!.end(workers[1]!.things);
  assert.equal(total(), 33);
  assert.equal(await fifty(), 0);
  workers[0]!.end(10);
  assert.equal(await fifty(), 7);
  await change(40);
  assert.equal(await fifty(), 10);
  await change(5);
  workers[0]!.end(workers[0]!.things);
  assert.equal(await fifty(), 0);
  for (const worker of workers) worker.end(worker.things);
  assert.equal(await fifty(), 5);
  await change(0);
  assert.equal(await fifty(), 50);
  await change(60);
  assert.equal(await fifty(), 5, 'one more than there may be is refused');
});

test('without a limit nothing is written, and nothing is kept for a workspace without activity', async (t) => {
  const { workers } = await startWorkers(t, 2, 0);
  const [worker] = workers;
  for (let n = 0; n < 20; n++) assert.equal(await worker!.begin(), true);
  await worker!.durable();
  assert.equal(worker!.commits, 0);
  assert.deepEqual(worker!.permits.known, []);
});
