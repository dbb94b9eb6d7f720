/** Which hooks get an event, by the times of both. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type HookId, newId, type RunId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { HookStates } from '#src/hooks/hook-states.ts';
import { Outbox, unlinkHookEvent } from '#src/hooks/outbox.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { MAX_TURN_MS } from '#src/runtime/homes/place-clock.ts';
import { SYSTEM } from '#storage/keys.ts';
import { hookEvents, hookPlaces, hookRecords } from '#storage/records/hooks.ts';
import { runIndex } from '#storage/records/runs.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const HOUR_MS = 3_600_000;

test('a hook that was created before the clock was set back gets the events since then', async (t) => {
  const outbox = await outboxOf(t);
  const hook = outbox.create(timestamp(Date.now() + HOUR_MS));
  await outbox.endRun();
  outbox.attend();
  assert.equal(outbox.waiting(hook), 1);
});

test('a hook does not get an event that had happened before its creation', async (t) => {
  const outbox = await outboxOf(t);
  outbox.create(timestamp(Date.now() - HOUR_MS)); // wants the event, so that it is stored
  await outbox.endRun();
  const endedMs = Date.now();
  await eventually('the clock goes on', () => Date.now() > endedMs + 1);
  const later = outbox.create(timestamp());
  outbox.attend();
  assert.equal(outbox.waiting(later), 0);
});

test('the end of a prompt whose run is deleted meanwhile is told to those alone who may know the conversation', async (t) => {
  for (const [mayKnow, told] of [
    [true, 1],
    [false, 0],
  ] as const) {
    const outbox = await outboxOf(t, mayKnow);
    const hook = outbox.create(timestamp(Date.now() - HOUR_MS));
    await outbox.endRun('conv_1');
    outbox.attend();
    assert.equal(outbox.waiting(hook), told);
  }
});

test('an event that many hooks want is offered to each of them once, in turns that end in time', async (t) => {
  const outbox = await outboxOf(t);
  const hooks = Array.from({ length: 5 }, () => outbox.create(timestamp(Date.now() - HOUR_MS)));
  await outbox.endRun();
  let nowMs = 0;
  t.mock.method(performance, 'now', () => (nowMs += MAX_TURN_MS / 2));
  const waiting = () => hooks.map((hook) => outbox.waiting(hook));
  let calls = 0;
  for (; waiting().includes(0); calls++) {
    assert(calls < hooks.length);
    outbox.attend();
  }
  assert(calls > 1, 'one turn is too short for all hooks');
  outbox.attend();
  assert.deepEqual(waiting(), [1, 1, 1, 1, 1]);
});

test('an event that waits when its workspace is deleted leaves no place', async (t) => {
  const outbox = await outboxOf(t);
  outbox.create(timestamp());
  await outbox.endRun();
  assert.equal(outbox.places(), 1);
  await outbox.deleteWorkspace();
  assert.equal(outbox.places(), 0);
});

async function outboxOf(t: TestContext, mayKnow = true) {
  const { store } = await temporaryStore(t);
  const states = new HookStates({
    store,
    runtime: new ActorRuntime(store, rememberingLog().log),
    metrics: new ServerMetrics(),
    cluster: ALONE,
  });
  let tellEnd: (actor: object, end: object) => void = () => undefined;
  const runs = {
    onEnded(listener: typeof tellEnd) {
      tellEnd = listener;
    },
  };
  const jobs = { onOccurrence: () => undefined, onPaused: () => undefined };
  const parts = { mayKnow: () => mayKnow, jobs, publicUrl: undefined, onPlace: () => undefined };
  const outbox = new Outbox({ store, cluster: ALONE, runs } as never, states, parts);
  return {
    create(createdAt: string): HookId {
      const id = newId<HookId>('hook');
      const definition = { url: 'http://127.0.0.1:9/', events: ['run.failed'], filter: {}, name: null };
      states.actors.spawn(
        { workspaceId: WORKSPACE, id },
        { workspaceId: WORKSPACE, hookId: id, isPaused: false },
      );
      const record = { ownerId: 'ada', createdAt, updatedAt: createdAt, secrets: [] };
      store.write((tx) =>
        tx.put(
          hookRecords,
          { ...record, definition: Buffer.from(JSON.stringify(definition)) },
          WORKSPACE,
          id,
        ),
      );
      states.noteWanted(WORKSPACE);
      return id;
    },
    /** Resolves when the event is stored. A run of a conversation is deleted then. */
    async endRun(sessionId?: string) {
      const runId = newId<RunId>('run');
      if (sessionId !== undefined)
        store.write((tx) => {
          const entry = {
            kind: 'agent',
            sessionId,
            environmentId: null,
            status: 'failed',
            createdAt: timestamp(),
          } as const;
          tx.put(runIndex, entry, WORKSPACE, runId);
        });
      tellEnd({ workspaceId: WORKSPACE }, { runId, status: 'failed', error: null });
      await store.durable();
      store.write((tx) => tx.remove(runIndex, WORKSPACE, runId));
      await store.durable();
    },
    places: () => [...store.listKeys(hookPlaces, SYSTEM, [], 10)].length,
    /** Removes the records of the workspace as its deletion does. */
    async deleteWorkspace() {
      store.write((tx) => {
        for (const key of store.listPartition(WORKSPACE, 100)) {
          const [, name, ...ids] = key;
          unlinkHookEvent(tx, key);
          tx.remove({ name, version: 1 }, WORKSPACE, ...ids);
        }
      });
      await store.durable();
    },
    /** Makes the deliveries of the events, as far as one call does. */
    attend(): void {
      for (const [id = ''] of [...store.listKeys(hookEvents, WORKSPACE, [], 10)])
        outbox.attend(WORKSPACE, id);
    },
    /** Returns how many deliveries wait for a hook. */
    waiting: (hookId: HookId) => states.bookOf(WORKSPACE, hookId).pending,
  };
}
