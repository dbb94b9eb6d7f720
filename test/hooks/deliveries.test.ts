/** A hook that is deleted while an attempt of a delivery is under way. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type DeliveryId, type HookId, newId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { Deliveries } from '#src/hooks/deliveries.ts';
import { HookStates } from '#src/hooks/hook-states.ts';
import type { Sent } from '#src/hooks/sender.ts';
import { newHookSecret } from '#src/hooks/signature.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { deliveryRecords, hookBooks, hookRecords } from '#storage/records/hooks.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const TAKEN: Sent = { status: 200, response: '', failure: null };

test('a hook that is deleted before the commit of an attempt sends nothing, and no fault is logged', async (t) => {
  const hook = await hookWithDelivery(t);
  hook.attend();
  hook.delete();
  await hook.committed();
  assert.deepEqual([hook.sent(), hook.faults()], [0, []]);
});

test('the answer to a request of a hook that was deleted meanwhile writes nothing', async (t) => {
  const hook = await hookWithDelivery(t);
  hook.attend();
  await eventually('the request is under way', () => hook.sent() === 1);
  hook.delete();
  const before = hook.stored();
  hook.answer();
  await hook.committed();
  assert.deepEqual([hook.stored(), hook.faults()], [before, []]);
});

test('a request is signed with the secrets that the hook has when it leaves', async (t) => {
  const hook = await hookWithDelivery(t);
  hook.attend();
  hook.rotate();
  await eventually('the request is under way', () => hook.sent() === 1);
  assert.deepEqual(hook.opened(), ['second']);
});

async function hookWithDelivery(t: TestContext) {
  const { store } = await temporaryStore(t);
  const { log, lines } = rememberingLog();
  const metrics = new ServerMetrics();
  const states = new HookStates({ store, runtime: new ActorRuntime(store, log), metrics, cluster: ALONE });
  const id = newId<HookId>('hook');
  const hook = { workspaceId: WORKSPACE, id };
  const secrets = new Map([['first', newHookSecret()]]);
  const answer = deferred<Sent>();
  let sent = 0;
  const opened: string[] = [];
  const deliveries = new Deliveries({ store, cluster: ALONE, log, metrics }, states, {
    send() {
      sent++;
      return answer.promise;
    },
    openSecret(_, name) {
      const secret = secrets.get(name);
      if (secret === undefined) throw new Error(`There is no secret ${name}.`);
      opened.push(name);
      return secret;
    },
    roleOf: () => 'owner',
    mayHaveHooks: () => true,
  });
  t.after(() => deliveries[Symbol.dispose]());
  const now = timestamp();
  const definition = { url: 'http://127.0.0.1:9/', events: [], filter: {}, name: null };
  const putWith = (name: string) =>
    store.write((tx) => {
      const record = {
        ownerId: 'ada',
        createdAt: now,
        updatedAt: now,
        secrets: [{ name, expiresAt: null }],
        definition: Buffer.from(JSON.stringify(definition)),
      };
      tx.put(hookRecords, record, WORKSPACE, id);
    });
  states.actors.spawn(hook, { workspaceId: WORKSPACE, hookId: id, isPaused: false });
  putWith('first');
  const deliveryId = newId<DeliveryId>('delivery');
  states.queue(hook, {
    ...{ id: deliveryId, hookId: id, event: 'hook.test', status: 'pending', attempts: 0, payload: '{}' },
    ...{ responseStatus: null, response: null, reason: null, lastAttemptAt: null, finishedAt: null },
    ...{ queuedAt: now, nextAttemptAt: now, createdAt: now },
  });
  await store.durable();
  return {
    attend: () => deliveries.attend(hook, Date.now() + 1),
    delete() {
      store.write((tx) => states.erase(tx, hook));
      secrets.clear();
    },
    rotate() {
      secrets.clear();
      secrets.set('second', newHookSecret());
      putWith('second');
    },
    answer: () => answer.resolve(TAKEN),
    /** Resolves after the commits of now, and what waits for them. */
    async committed() {
      await store.durable();
      await new Promise(setImmediate);
      await store.durable();
    },
    sent: () => sent,
    opened: () => opened,
    faults: () => lines.filter(({ level }) => level === 'error').map(({ msg }) => msg),
    stored: () => ({
      book: store.get(hookBooks, WORKSPACE, id),
      delivery: Buffer.from(store.get(deliveryRecords, WORKSPACE, id, deliveryId) ?? []).toString(),
    }),
  };
}
