import assert from 'node:assert/strict';
import test from 'node:test';
import { type AnyStateMachine, assign, createActor, createMachine, emit, fromCallback, setup } from 'xstate';
import { environmentMachine } from '#machines/environment.ts';
import type { EnvironmentId, WorkspaceId } from '#src/base/ids.ts';
import { InitialStates } from '#src/runtime/actors/initial-state.ts';
import { Environments } from '#src/runtime/sessions/environments.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { addWorkspaces, temporaryStore } from '#test/support/store/temporary-store.ts';
import { startBoxes, WORKSPACE } from './boxes.ts';

test('the first state of an actor is that of an actor of XState with the same input', () => {
  const states = new InitialStates(environmentMachine);
  for (const id of ['env_1', 'env_2']) {
    const input = { workspaceId: 'ws_1' as WorkspaceId, environmentId: id as EnvironmentId };
    const begun = states.of(input)!;
    const { value, context, status } = createActor(environmentMachine, { input }).getSnapshot();
    assert.deepEqual([begun.value, begun.context, begun.status], [value, context, status]);
    assert.equal(begun.can({ type: 'close' }), true);
  }
});

test('an actor that does something when it begins has no first state without an actor', () => {
  const plain = setup({ types: {} as { input: { n: number }; emitted: { type: 'begun' } } });
  const idle = plain.createMachine({ context: ({ input }) => input, entry: assign({}) });
  assert.deepEqual(new InitialStates(idle).of({ n: 1 })?.context, { n: 1 });
  const beginnings: readonly AnyStateMachine[] = [
    plain.createMachine({ entry: () => undefined }),
    plain.createMachine({ entry: emit({ type: 'begun' }) }),
    createMachine({ invoke: { src: fromCallback(() => undefined) } }),
    plain.createMachine({ after: { 1000: {} } }),
    plain.createMachine({ type: 'final' }),
    plain.createMachine({
      context: () => {
        throw new Error('it cannot begin');
      },
    }),
  ];
  for (const machine of beginnings) assert.equal(new InitialStates(machine).of({ n: 1 }), undefined);
});

test('a new environment is stored with its commit, and is in no memory afterwards', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime } = startBoxes(t, store);
  addWorkspaces(store, WORKSPACE);
  const environments = new Environments(runtime, store);
  const { environmentId, createdAt } = environments.create(WORKSPACE);
  assert.equal(environments.close(WORKSPACE, environmentId).status, 'closed');
  const { environmentId: open } = environments.create(WORKSPACE);
  await store.durable();
  assert.deepEqual([...runtime.inspect()], []);
  const stored = store.get(actorSnapshots, WORKSPACE, 'environment', environmentId);
  assert.deepEqual([stored?.value, stored?.revision, stored?.createdAt], ['closed', 2, createdAt]);
  assert.deepEqual(
    runtime.list(WORKSPACE, { ended: false, limit: 10 }).items.map(({ id, presence }) => [id, presence]),
    [[open, 'stored']],
  );
});
