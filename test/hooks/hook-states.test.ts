/** The bounds of the deliveries that a hook keeps. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type DeliveryId, type HookId, newId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { deliveryIn, HookStates } from '#src/hooks/hook-states.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { deliveryRecords, hookQueue } from '#storage/records/hooks.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const MAX_PENDING = 500;
const MAX_STORED = 1000;

test('of more than 500 deliveries that wait, the one that waits longest dies, says why and is counted', async (t) => {
  const { queue, pending, waiting, stored, metrics } = await hookOf(t);
  const first = await queue(MAX_PENDING);
  assert.deepEqual([pending(), waiting(), stored().length], [MAX_PENDING, MAX_PENDING, MAX_PENDING]);
  await queue(1);
  assert.deepEqual([pending(), waiting(), stored().length], [MAX_PENDING, MAX_PENDING, MAX_PENDING + 1]);
  const dead = stored().filter(({ status }) => status === 'dead');
  assert.deepEqual(
    dead.map(({ id, reason, nextAttemptAt }) => [id, reason?.code, nextAttemptAt]),
    [[first[0], 'outbox_full', null]],
  );
  assert.equal(metrics.hookDeliveries.of('dead', 'outbox_full').value, 1);
});

test('a hook keeps its last 1,000 deliveries, and removes none that waits', async (t) => {
  const { queue, pending, stored } = await hookOf(t);
  const ids = await queue(MAX_STORED);
  assert.deepEqual(
    stored().map(({ id }) => id),
    ids,
  );
  ids.push(...(await queue(1)));
  assert.deepEqual(
    stored().map(({ id }) => id),
    ids.slice(1),
  );
  assert.deepEqual(
    [pending(), stored().filter(({ status }) => status === 'pending').length],
    [MAX_PENDING, MAX_PENDING],
  );
});

test('deliveries that are queued in one turn are beyond the bounds only until the next one', async (t) => {
  const { queueAtOnce, queue, pending, waiting, stored } = await hookOf(t);
  await queueAtOnce(MAX_STORED + 200);
  await queue(1);
  assert.deepEqual([pending(), waiting()], [MAX_PENDING, MAX_PENDING]);
  await queue(1);
  assert.equal(stored().length, MAX_STORED);
});

async function hookOf(t: TestContext) {
  const { store } = await temporaryStore(t);
  const metrics = new ServerMetrics();
  const runtime = new ActorRuntime(store, rememberingLog().log);
  const states = new HookStates({ store, runtime, metrics, cluster: ALONE });
  const hook = { workspaceId: WORKSPACE, id: newId<HookId>('hook') };
  states.actors.spawn(hook, { workspaceId: WORKSPACE, hookId: hook.id, isPaused: false });
  await store.durable();
  const queueOne = () => {
    const delivery = newDelivery(hook.id);
    states.queue(hook, delivery);
    return delivery.id;
  };
  /** Queues deliveries in one turn. */
  const queueAtOnce = async (count: number) => {
    const ids = Array.from({ length: count }, queueOne);
    await store.durable();
    return ids;
  };
  return {
    metrics,
    queueAtOnce,
    /** Queues deliveries, a few in each turn. */
    async queue(count: number) {
      const ids: string[] = [];
      while (ids.length < count) ids.push(...(await queueAtOnce(Math.min(count - ids.length, 10))));
      return ids;
    },
    pending: () => states.bookOf(WORKSPACE, hook.id).pending,
    waiting: () => [...store.listKeys(hookQueue, WORKSPACE, [hook.id], 2 * MAX_STORED)].length,
    stored() {
      const found = [...store.list(deliveryRecords, WORKSPACE, [hook.id], { limit: 2 * MAX_STORED })];
      assert.equal(states.bookOf(WORKSPACE, hook.id).stored, found.length);
      return found.map(({ value }) => deliveryIn(value));
    },
  };
}

function newDelivery(hookId: string): Delivery {
  const now = timestamp();
  return {
    id: newId<DeliveryId>('delivery'),
    hookId,
    event: 'hook.test',
    status: 'pending',
    attempts: 0,
    responseStatus: null,
    response: null,
    reason: null,
    payload: '{}',
    queuedAt: now,
    lastAttemptAt: null,
    nextAttemptAt: now,
    finishedAt: null,
    createdAt: now,
  };
}
