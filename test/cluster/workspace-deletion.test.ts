import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Removals } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { openWorkers, refusalOf, TOKEN } from './identity-workers.ts';

/** Two workers: the workspace `home` is at home in the first, what is created in the second. */
async function open(t: TestContext, isActive: (workspaceId: string) => boolean = () => false) {
  const workers = await openWorkers(t, (workspaceId) => (workspaceId === 'home' ? 0 : 1));
  const forgotten: string[] = [];
  const removalsOf: Removals[] = [];
  const deletions = workers.map(({ identity, cluster, store }) => {
    const removals = new Removals(store, assert.ifError, (workspaceId) => cluster.owns(workspaceId));
    removalsOf.push(removals);
    return identity.openDeletion(removals, {
      mayBeInUse: async () => false,
      isActive,
      forget: (workspaceId) => void forgotten.push(`${cluster.worker} ${workspaceId}`),
      unlink: () => undefined,
    });
  });
  const [first, second] = workers;
  const owner = first.enter(TOKEN);
  const create = async (name: string) => {
    const { id } = second.identity.workspaces.create(second.enter(TOKEN), name);
    await second.identity.durable();
    return id;
  };
  const removed = (id: string) =>
    eventually(
      'nothing is left of it',
      () => !removalsOf[1]!.isPending({ kind: 'workspace', workspaceId: id, home: undefined, id }),
    );
  /** Deletes a workspace in its home, as a request does. */
  const remove = async (id: string) => {
    const { store, identity } = id === 'home' ? first : second;
    const deletion = deletions[id === 'home' ? 0 : 1]!;
    store.refresh();
    await deletion.prepare(owner, id);
    await new Promise<void>((resolve, reject) => {
      store.decide(() => {
        try {
          resolve(deletion.delete(owner, id));
        } catch (error) {
          reject(error);
        }
      });
    });
    await identity.durable();
  };
  return {
    ...{ first, second, create, remove, removed, forgotten },
    /** Before the stores are closed. */
    [Symbol.dispose]: () => {
      for (const removals of removalsOf) removals[Symbol.dispose]();
    },
  };
}

test('a workspace is deleted by the worker in which it is at home, and no worker knows it afterwards', async (t) => {
  using workers = await open(t);
  const { first, second, create, remove, removed, forgotten } = workers;
  const id = await create('other');
  assert.equal(first.enter(TOKEN, id).role, 'owner');
  await remove(id);
  assert.deepEqual(forgotten, [`1 ${id}`]);
  for (const { enter } of [first, second])
    assert.equal(
      refusalOf(() => enter(TOKEN, id)),
      'not_found',
    );
  await assert.rejects(remove(id), { code: 'not_found' });
  await removed(id);
});

test('a workspace stays while sessions are open in the worker in which it is at home', async (t) => {
  const busy = new Set<string>();
  using workers = await open(t, (id) => busy.has(id));
  const { first, create, remove, forgotten } = workers;
  const id = await create('other');
  busy.add(id);
  await assert.rejects(remove(id), { code: 'workspace_in_use' });
  assert.deepEqual([forgotten, first.enter(TOKEN, id).role], [[], 'owner']);
});

test('of two deletions at the same moment that would leave a user without a workspace, one is refused', async (t) => {
  using workers = await open(t);
  const { first, create, remove } = workers;
  const id = await create('other');
  const outcomes = await Promise.allSettled([remove(id), remove('home')]);
  const [other, home] = outcomes.map((outcome) =>
    outcome.status === 'rejected' ? outcome.reason.code : 'deleted',
  );
  assert.deepEqual([other, home].sort(), ['deleted', 'last_workspace']);
  assert.equal(first.enter(TOKEN, home === 'deleted' ? id : 'home').role, 'owner');
});
