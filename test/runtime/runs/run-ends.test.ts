/** The list of ended runs, as a client polls it, of a server with several workers, each with a store of its own on the same files. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunEnds } from '#src/runtime/runs/run-ends.ts';
import type { RunQuery } from '#src/runtime/runs/run-lists.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { rememberingLog, sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const END = { status: 'completed', error: null, output: null, assets: new Map() } as const;
const EVER = '1970-01-01T00:00:00Z';

interface ListedRun {
  readonly id: RunId;
  readonly finishedAt: string;
}

async function startWorkers(t: TestContext, size: number) {
  const { path } = await temporaryStore(t);
  const open = async (cluster: ReturnType<typeof testCluster>[number]) => {
    const store = await sharedStore(t, path);
    const runtime = new ActorRuntime(store, rememberingLog().log, undefined, {
      own: cluster.incarnation,
      livesElsewhere: (owner) => cluster.livesElsewhere(owner),
      owns: () => true,
    });
    t.after(() => runtime.stopAll());
    const runs = new RunRepository(store, runtime, { ends: new RunEnds(store, cluster) });
    const sessionId = `nb_${cluster.worker}` as SessionId;
    const begin = () =>
      runs.begin({ workspaceId: WORKSPACE, sessionId, kind: 'notebook', input: null }).runId;
    const end = (runId = begin()) => {
      runs.finish(WORKSPACE, runId, END);
      return runId;
    };
    const page = async (query: Partial<RunQuery> = {}) => {
      store.refresh();
      const json = await runs.reader.list(WORKSPACE, { limit: 7, finishedAfter: EVER, ...query });
      return JSON.parse(Buffer.from(json).toString()) as { items: ListedRun[]; nextCursor: string | null };
    };
    return { cluster, store, begin, end, page };
  };
  return Promise.all(testCluster(size, () => 0).map(open));
}

/** Returns a client's poll: each call asks from the last end that the client has seen, and returns the runs that are new to it. */
function poller(
  page: (query: Partial<RunQuery>) => Promise<{ items: ListedRun[]; nextCursor: string | null }>,
) {
  const seen = new Map<RunId, string>();
  let finishedAfter = EVER;
  const poll = async () => {
    let after: string | undefined;
    do {
      const { items, nextCursor }: { items: ListedRun[]; nextCursor: string | null } = await page({
        finishedAfter,
        after,
      });
      for (const { id, finishedAt } of items) seen.set(id, finishedAt);
      after = nextCursor ?? undefined;
    } while (after !== undefined);
    finishedAfter = [...seen.values()].at(-1) ?? EVER;
  };
  return { seen, poll };
}

for (const size of [1, 3])
  test(`a client that polls from the last end that it has seen misses no run of ${size} workers`, async (t) => {
    const workers = await startWorkers(t, size);
    const ended: RunId[] = [];
    let isOver = false;
    const ending = Promise.all(
      workers.map(async ({ store, end }, worker) => {
        for (let n = 0; n < 100; n++) {
          ended.push(end());
          if ((n + worker) % 3 === 0) await store.durable();
          else if (n % 5 === 0) await turnOver();
        }
      }),
    ).finally(() => {
      isOver = true;
    });
    const { seen, poll } = poller(workers[0]!.page);
    while (!isOver) await poll();
    await ending;
    await poll();
    assert.deepEqual([...seen.keys()].toSorted(), ended.toSorted());
    const ends = [...seen.values()];
    assert.deepEqual(ends, ends.toSorted(), 'they come in the order of their ends');
  });

test('a page waits for earlier ends that another worker has not committed', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  const early = second!.end();
  const late = first!.end();
  await first!.store.durable();
  const { items } = await first!.page();
  assert.deepEqual(items.map(({ id }) => id).toSorted(), [early, late].toSorted());
});

test('after a page, no run of any worker ends before the newest end on it, even with a clock that is set back', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  first!.end();
  await first!.store.durable();
  const [shown] = (await second!.page()).items;
  const now = Date.now();
  t.mock.method(Date, 'now', () => now - 60_000);
  const later = [first!.end(), second!.end()];
  t.mock.restoreAll();
  const { items } = await first!.page({ finishedAfter: shown!.finishedAt });
  assert.deepEqual(items.map(({ id }) => id).toSorted(), [shown!.id, ...later].toSorted());
});

test('the newest ends are listed without a question to other workers', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  const runs = [first!.end(), first!.end()];
  await first!.store.durable();
  const { items } = await first!.page({ order: 'desc' });
  assert.deepEqual(new Set(items.map(({ id }) => id)), new Set(runs));
  assert.deepEqual(second!.cluster.asked, []);
});
