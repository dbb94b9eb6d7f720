/** Operators' lists of one workspace whose actors and kernels are in several workers. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { ActorDetail } from '#src/contract/wire/actor.ts';
import type { KernelUsage } from '#src/contract/wire/server.ts';
import { type ActorInspection, actorRoutes } from '#src/http/routes/actors.ts';
import { actorsOfAll } from '#src/operate/operators/actors-of-all.ts';
import { kernelsOfAll, sessionsOfAll } from '#src/operate/operators/kernels-of-all.ts';
import type { ActorEvents } from '#src/runtime/actors/actor-events.ts';
import { Environments } from '#src/runtime/sessions/environments.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { box, put, startBoxes, WORKSPACE } from '#test/runtime/actors/boxes.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';
import { type TestWorker, testCluster } from '#test/support/test-cluster.ts';
import { send } from '../http/test-server.ts';
import { use } from '../http/thing-routes.ts';
import { startTwoWorkers } from './two-workers.ts';

const WORKERS = 3;
const ALL = { limit: 100, ended: false } as const;

/** Each worker has actors, and a store of its own on the same files. */
async function startWorkers(t: TestContext, cluster: readonly TestWorker[] = testCluster(WORKERS, () => 0)) {
  const { store: first, path } = await temporaryStore(t);
  first.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, WORKSPACE));
  await first.durable();
  const start = async (worker: TestWorker) => {
    const store = await sharedStore(t, path);
    const boxes = startBoxes(t, store);
    const environments = new Environments(boxes.runtime, store);
    return { ...boxes, store, environments, all: actorsOfAll(boxes.runtime, store, worker) };
  };
  return Promise.all(cluster.map(start));
}

test('every worker lists the actors of all workers once each, page by page', async (t) => {
  const workers = await startWorkers(t);
  const ids = Array.from({ length: 10 }, (_, n) => `b${n}`);
  for (const [n, id] of ids.entries()) workers[n % WORKERS]!.actors.spawn(box(id), { id });
  workers[1]!.actors.ask(box('b4'), put('a hat'));
  workers[2]!.bags.spawn(box('a'), { id: 'a' });
  workers[2]!.actors.spawn({ ...box('other'), workspaceId: 'ws_2' as typeof WORKSPACE }, { id: 'other' });
  for (const { all } of workers) {
    for (const limit of [1, 3, 11, 100]) {
      const found: string[] = [];
      let after: string | undefined;
      do {
        const page = await all.list(WORKSPACE, { ...ALL, limit, after });
        assert.ok(page.items.length <= limit);
        assert.deepEqual(page.counts, [
          { kind: 'bag', state: 'empty', count: 1 },
          { kind: 'box', state: 'empty', count: 9 },
          { kind: 'box', state: 'full', count: 1 },
        ]);
        assert.equal(page.silentWorkers, 0);
        found.push(...page.items.map(({ kind, id }) => `${kind}/${id}`));
        after = page.nextCursor ?? undefined;
      } while (after !== undefined);
      assert.deepEqual(found, ['bag/a', ...ids.map((id) => `box/${id}`)], `pages of ${limit}`);
    }
    const { items } = await all.list(WORKSPACE, { ...ALL, state: 'full' });
    assert.deepEqual(
      items.map(({ id }) => id),
      ['b4'],
    );
  }
});

test("recently ended actors are listed from every worker's memory", async (t) => {
  const workers = await startWorkers(t);
  for (const [n, { actors }] of workers.entries()) {
    actors.spawn(box(`b${n}`), { id: `b${n}` });
    actors.ask(box(`b${n}`), { type: 'burn' });
  }
  await Promise.all(workers.map(({ store }) => store.durable()));
  const [{ all }] = workers as [(typeof workers)[0]];
  assert.deepEqual((await all.list(WORKSPACE, ALL)).items, []);
  const { items, counts } = await all.list(WORKSPACE, { ...ALL, ended: true });
  assert.deepEqual(
    items.map(({ id, presence }) => [id, presence]),
    ['b0', 'b1', 'b2'].map((id) => [id, 'ended']),
  );
  assert.deepEqual(counts, [{ kind: 'box', state: 'ashes', count: 3 }]);
});

test('an environment, which every worker reads from the store, is listed and counted once', async (t) => {
  const workers = await startWorkers(t);
  const [{ store, environments }] = workers as [(typeof workers)[0]];
  store.decide(() => void environments.create(WORKSPACE));
  await store.durable();
  for (const { all, store: own } of workers) {
    own.refresh();
    const { items, counts } = await all.list(WORKSPACE, ALL);
    assert.deepEqual(
      [items.length, counts.map(({ kind, count }) => [kind, count])],
      [1, [['environment', 1]]],
    );
  }
});

test('one actor is read in the worker that is its home', async (t) => {
  const detail = (worker: number, kind: string, id: string): ActorDetail => ({
    ...{ workspaceId: WORKSPACE, kind, id, machine: kind, presence: 'live', state: 'open', path: 'open' },
    ...{
      since: '',
      revision: worker,
      links: [],
      createdAt: '',
      context: {},
      trail: [],
      takes: [],
      refuses: [],
    },
  });
  const { servers, workspaceIn, notebookIn } = await startTwoWorkers(t, (worker) => {
    const actors: ActorInspection = {
      list: async () => ({ items: [], nextCursor: null, counts: [] }),
      detail: (kind, { id }) => (id === 'unknown' ? undefined : detail(worker, kind, id)),
      chart: () => undefined,
    };
    const runs = { homeOf: (_: string, runId: string) => (runId === 'run_1' ? there : undefined) };
    return actorRoutes(actors, {} as ActorEvents, runs).map((route) => ({ ...route, access: use }));
  });
  const workspaceId = workspaceIn(0);
  const there = notebookIn(1, workspaceId);
  const headers = { authorization: 'Bearer good', 'service-workspace-id': workspaceId };
  const answerOf = async (path: string) => {
    const { status, json } = await send(servers[0], `/api/v3/actors/${path}`, { headers });
    return status === 200 ? (json as { revision: number }).revision : status;
  };
  assert.equal(await answerOf(`notebook-session/${there}`), 1);
  assert.equal(await answerOf(`agent-session/${notebookIn(0, workspaceId)}`), 0);
  assert.equal(await answerOf('run/run_1'), 1);
  assert.equal(await answerOf('environment/env_1'), 0);
  assert.equal(await answerOf('run/unknown'), 404);
});

test('an actor of another worker is shown only after its state is on disk', async (t) => {
  const [asking, other] = await startWorkers(
    t,
    testCluster(2, () => 0),
  );
  other!.actors.spawn(box('a'), { id: 'a' });
  const committed = other!.store.durable();
  let isCommitted = false;
  void committed?.then(() => {
    isCommitted = true;
  });
  const { items } = await asking!.all.list(WORKSPACE, ALL);
  assert.deepEqual([items.length, isCommitted], [1, true]);
});

test('a worker that does not answer is counted as silent', async (t) => {
  const [first, second] = testCluster(2, () => 0);
  const [asking, silent] = await startWorkers(t, [{ ...first!, askOthers: async () => [] }, second!]);
  asking!.actors.spawn(box('a'), { id: 'a' });
  silent!.actors.spawn(box('b'), { id: 'b' });
  const { items, silentWorkers } = await asking!.all.list(WORKSPACE, ALL);
  assert.deepEqual([items.map(({ id }) => id), silentWorkers], [['a'], 1]);
});

const kernel = (worker: number, n: number, memoryBytes: number): KernelUsage => ({
  workspaceId: n === 9 ? 'ws_2' : WORKSPACE,
  sessionId: `nb_${worker}_${n}`,
  node: null,
  pid: worker * 10 + n,
  cpuSeconds: 1,
  memoryBytes,
});

test('the kernels of a workspace are listed from all workers, with the most memory first', async () => {
  const kernels = [
    [kernel(0, 1, 50), kernel(0, 2, 20)],
    [kernel(1, 1, 40), kernel(1, 9, 99)],
  ];
  const lists = testCluster(2, () => 0).map((worker) => {
    const sampledAt = `2026-01-31T12:00:0${worker.worker}.000Z`;
    const sample = async () => ({ sampledAt, kernels: kernels[worker.worker]! });
    return kernelsOfAll({ sample }, 1024, worker);
  });
  for (const list of lists) {
    const { items, sampledAt, memoryLimitBytes, silentWorkers } = await list(WORKSPACE, {});
    assert.deepEqual(
      items.map(({ sessionId }) => sessionId),
      ['nb_0_1', 'nb_1_1', 'nb_0_2'],
    );
    assert.deepEqual([sampledAt, memoryLimitBytes, silentWorkers], ['2026-01-31T12:00:00.000Z', 1024, 0]);
    assert.deepEqual(
      (await list(WORKSPACE, { limit: 2 })).items.map(({ memoryBytes }) => memoryBytes),
      [50, 40],
    );
    assert.deepEqual(
      (await list(WORKSPACE, { sessionId: 'nb_1_1' })).items.map(({ pid }) => pid),
      [11],
    );
  }
});

test('a request that adds packages returns the sessions, of all workers, that continue without the new packages', async () => {
  const lists = testCluster(2, () => 0).map((worker) =>
    sessionsOfAll((workspaceId) => (workspaceId === WORKSPACE ? [`nb_${worker.worker}`] : []), worker),
  );
  for (const list of lists) assert.deepEqual([...(await list(WORKSPACE))].sort(), ['nb_0', 'nb_1']);
});
