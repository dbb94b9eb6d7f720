/** Lists of the runs that several workers begin, each with a store of its own on the same files. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turnOver } from 'node:timers/promises';
import { firstIdAt, newId, type RunId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { RunQuery } from '#src/runtime/runs/run-lists.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { SettledRuns } from '#src/runtime/runs/settled-runs.ts';
import { runIndex } from '#storage/records/runs.ts';
import { rememberingLog, sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const HOUR_MS = 3_600_000;

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
    const settled = new SettledRuns(store, cluster);
    const runs = new RunRepository(store, runtime, { settled });
    const sessionId = `nb_${cluster.worker}` as SessionId;
    const begin = () =>
      runs.begin({ workspaceId: WORKSPACE, sessionId, kind: 'notebook', input: null }).runId;
    const list = async (query: Partial<RunQuery> = {}): Promise<RunId[]> => {
      store.refresh();
      const page = await runs.reader.list(WORKSPACE, { limit: 1000, ...query });
      return JSON.parse(Buffer.from(page).toString()).items.map(({ id }: { id: RunId }) => id);
    };
    return { cluster, store, settled, begin, list };
  };
  return Promise.all(testCluster(size, () => 0).map(open));
}

test('paging the runs of a workspace misses no run that three workers begin', async (t) => {
  const workers = await startWorkers(t, 3);
  const begun: RunId[] = [];
  let isOver = false;
  const beginning = Promise.all(
    workers.map(async ({ store, begin }, worker) => {
      for (let n = 0; n < 100; n++) {
        begun.push(begin());
        if ((n + worker) % 3 === 0) await store.durable();
        else if (n % 5 === 0) await turnOver();
      }
    }),
  ).finally(() => {
    isOver = true;
  });
  const walked: RunId[] = [];
  const walk = async () => {
    walked.push(...(await workers[0]!.list({ after: walked.at(-1) })));
  };
  while (!isOver) await walk();
  await beginning;
  await walk();
  assert.deepEqual(walked, begun.toSorted());
});

test('a page waits for runs with smaller ids that another worker has not committed', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  const early = second!.begin();
  const late = first!.begin();
  await first!.store.durable();
  assert.deepEqual(await first!.list(), [early, late]);
});

test('an acknowledged run is in the next list of every worker, even when its own worker counts ahead of the clock', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  for (let n = 0; n < 20; n++) {
    const id = second!.begin();
    await second!.store.durable();
    assert.equal((await first!.list()).at(-1), id);
  }
  const ahead = `${firstIdAt('run', Date.now() + HOUR_MS)}${'0'.repeat(16)}`;
  const entry = { kind: 'notebook', sessionId: 'nb_1', environmentId: null, status: 'running' } as const;
  second!.store.write((tx) => tx.put(runIndex, { ...entry, createdAt: '' }, WORKSPACE, ahead));
  await second!.store.durable();
  first!.store.refresh();
  const horizon = await first!.settled.horizon(WORKSPACE);
  assert.ok(horizon > ahead, `${horizon} ${ahead}`);
  assert.ok(newId<RunId>('run') > horizon, 'no worker makes a smaller one');
});

test('lists of one session, and lists of the newest runs, do not need other workers', async (t) => {
  const [first, second] = await startWorkers(t, 2);
  const id = first!.begin();
  await first!.store.durable();
  assert.deepEqual(await first!.list({ sessionId: 'nb_0' }), [id]);
  assert.deepEqual(await first!.list({ order: 'desc' }), [id]);
  assert.deepEqual(second!.cluster.asked, []);
  assert.deepEqual(await first!.list({ order: 'asc' }), [id]);
  assert.deepEqual(second!.cluster.asked, ['runs-settled']);
});
