/** Environments that sessions of two workers want: each worker has a store of its own on the same files. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { Environments } from '#src/runtime/sessions/environments.ts';
import { defineRecord } from '#storage/codec.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { damage } from '#test/support/store/damage.ts';
import { rememberingLog, sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const AT_ONCE = 50;

async function twoWorkers(t: TestContext) {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, WORKSPACE));
  await store.durable();
  const open = async () => {
    const store = await sharedStore(t, path);
    const runtime = new ActorRuntime(store, rememberingLog().log);
    const environments = new Environments(runtime, store);
    /** Resolves with the result of the decision, or the code of its refusal, once that is committed. */
    const decide = async <T>(decision: () => T): Promise<T | string> => {
      const outcome = await new Promise<T | string>((resolve) =>
        store.decide(() => {
          try {
            resolve(decision());
          } catch (error) {
            resolve(String((error as { code?: string }).code ?? error));
          }
        }),
      );
      await store.durable();
      return outcome;
    };
    return { store, path, runtime, environments, decide };
  };
  return [await open(), await open()] as const;
}

const session = (n: number) => `nb_${n}` as SessionId;

test('when fifty sessions of two workers want one environment at once, one gets it', async (t) => {
  const workers = await twoWorkers(t);
  const [first, second] = workers;
  const created = await first.decide(() => first.environments.create(WORKSPACE));
  assert.ok(typeof created === 'object');
  const id = { workspaceId: WORKSPACE, id: created.environmentId };
  const attach = (n: number): Promise<string> => {
    const { decide, environments } = workers[n % 2]!;
    return decide(() => {
      environments.actors.ask(id, { type: 'attachNotebook', sessionId: session(n) });
      return 'attached';
    });
  };
  const close = (): Promise<unknown> =>
    second.decide(() => second.environments.close(WORKSPACE, created.environmentId));
  for (let round = 0; round < 5; round++) {
    const outcomes = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => attach(n)));
    assert.deepEqual(
      outcomes.filter((outcome) => outcome !== 'environment_occupied'),
      ['attached'],
    );
    const sessionId = session(outcomes.indexOf('attached'));
    for (const { store, environments } of workers) {
      store.refresh();
      assert.equal(environments.record(WORKSPACE, created.environmentId).notebookSessionId, sessionId);
    }
    assert.equal(await close(), 'environment_in_use');
    await second.decide(() => second.environments.actors.tell(id, { type: 'detachNotebook', sessionId }));
  }
  await close();
  assert.equal(await attach(0), 'environment_closed');
});

test('an environment is in the memory of no worker between shared turns', async (t) => {
  const [first] = await twoWorkers(t);
  await first.decide(() => first.environments.create(WORKSPACE));
  assert.deepEqual(first.runtime.counts(), []);
});

test('in a server of several workers an environment is changed in shared turns only', async (t) => {
  const [first] = await twoWorkers(t);
  assert.throws(
    () => first.environments.create(WORKSPACE),
    /An actor of a shared kind is addressed only in a shared turn/,
  );
  const created = await first.decide(() => first.environments.create(WORKSPACE));
  assert.ok(typeof created === 'object');
  assert.throws(
    () => first.environments.close(WORKSPACE, created.environmentId),
    /An actor of a shared kind is addressed only in a shared turn/,
  );
});

test('no environment is created in a workspace that another worker has deleted meanwhile', async (t) => {
  const [first, second] = await twoWorkers(t);
  second.store.write((tx) => tx.remove(workspaceRecords, WORKSPACE));
  await second.store.durable();
  assert.equal(await first.decide(() => first.environments.create(WORKSPACE)), 'not_found');
});

test('a turn that deletes a workspace sees a session that another worker has just attached to an environment', async (t) => {
  const [first, second] = await twoWorkers(t);
  const created = await first.decide(() => first.environments.create(WORKSPACE));
  assert.ok(typeof created === 'object');
  const id = { workspaceId: WORKSPACE, id: created.environmentId };
  const isInUse = () => first.decide(() => first.environments.areInUseNow(WORKSPACE));
  assert.equal(await first.environments.areInUse(WORKSPACE), false);
  let seen: Promise<boolean | string> | undefined;
  await second.decide(() => {
    second.environments.actors.ask(id, { type: 'attachAgent', sessionId: session(1) });
    seen = isInUse();
  });
  assert.equal(await seen, true);
  await second.decide(() =>
    second.environments.actors.tell(id, { type: 'detachAgent', sessionId: session(1) }),
  );
  assert.equal(await isInUse(), false);
});

test('the list of actors leaves out an environment whose record is damaged', async (t) => {
  const [first] = await twoWorkers(t);
  const created = [
    await first.decide(() => first.environments.create(WORKSPACE).environmentId),
    await first.decide(() => first.environments.create(WORKSPACE).environmentId),
  ];
  const snapshots = defineRecord<string>(actorSnapshots.name, actorSnapshots.version);
  first.store.write((tx) => tx.put(snapshots, 'the state to damage', WORKSPACE, 'environment', created[0]!));
  await first.store.durable();
  damage(join(first.path, 'data.mdb'), 'the state to damage');
  first.store.refresh();
  assert.deepEqual(
    first.runtime.countsOf(WORKSPACE).map(({ count }) => count),
    [1],
  );
});
