import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { memberRecords } from '#storage/records/identity.ts';
import { notebookSecretRecords } from '#storage/records/notebooks.ts';
import { Removals, removalOf } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { openWorkers, refusalOf, TOKEN } from './identity-workers.ts';

/** Two workers: the workspace `home` is at home in the first, new ones in the second. */
async function open(t: TestContext, isActive: (workspaceId: string) => boolean = () => false) {
  const workers = await openWorkers(t, (workspaceId) => (workspaceId === 'home' ? 0 : 1));
  const forgotten: string[] = [];
  const deleted: string[] = [];
  const removalsOf: Removals[] = [];
  const deletions = workers.map(({ identity, cluster, store }) => {
    const removals = new Removals(store, assert.ifError, (workspaceId) => cluster.owns(workspaceId));
    removalsOf.push(removals);
    return identity.openDeletion(removals, {
      mayBeInUse: async () => false,
      isActive,
      forget: (workspaceId) => void forgotten.push(`${cluster.worker} ${workspaceId}`),
      deleted: (workspaceId) => void deleted.push(workspaceId),
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
    eventually('nothing is left of it', () => !removalsOf[1]!.isPending(removalOf(id)));
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
    ...{ first, second, create, remove, removed, forgotten, deleted },
    /** Ends the removals; to be called before the stores are closed. */
    [Symbol.dispose]: () => {
      for (const removals of removalsOf) removals[Symbol.dispose]();
    },
  };
}

test('the home of a workspace deletes the workspace, and afterwards no worker finds the workspace', async (t) => {
  using workers = await open(t);
  const { first, second, create, remove, removed, forgotten, deleted } = workers;
  const id = await create('other');
  assert.equal(first.enter(TOKEN, id).role, 'owner');
  await remove(id);
  assert.deepEqual(forgotten.slice(0, 2), [`1 ${id}`, `0 ${id}`], 'both have forgotten it before the answer');
  for (const { enter } of [first, second])
    assert.equal(
      refusalOf(() => enter(TOKEN, id)),
      'not_found',
    );
  await assert.rejects(remove(id), { code: 'not_found' });
  await removed(id);
  assert.deepEqual(deleted, [id]);
});

test('a workspace is not deleted while sessions are open in its home', async (t) => {
  const busy = new Set<string>();
  using workers = await open(t, (id) => busy.has(id));
  const { first, create, remove, forgotten } = workers;
  const id = await create('other');
  busy.add(id);
  await assert.rejects(remove(id), { code: 'workspace_in_use' });
  assert.deepEqual([forgotten, first.enter(TOKEN, id).role], [[], 'owner']);
});

test('of two simultaneous deletions that would leave a user without a workspace, one is refused', async (t) => {
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

test('no part of a deleted workspace is removed before every worker has forgotten the workspace and written its decisions about it', async (t) => {
  using workers = await open(t);
  const { first, second, create, remove, removed } = workers;
  const id = await create('other');
  const { answer } = first.cluster.holdAnswer('workspace-deleted');
  const deleting = remove(id);
  await eventually('the other worker is asked', () => first.cluster.asked.includes('workspace-deleted'));
  // The worker that was asked still commits a change of a notebook in that workspace.
  first.store.write((tx) => tx.put(notebookSecretRecords, { byName: {} }, id, 'nb_1'));
  await first.store.durable();
  for (let commits = 0; commits < 20; commits++) {
    second.store.write((tx) => tx.put(notebookSecretRecords, { byName: {} }, 'home', 'nb_1'));
    await second.store.durable();
  }
  second.store.refresh();
  assert.ok(second.store.get(notebookSecretRecords, id, 'nb_1') !== undefined);
  assert.equal([...second.store.listKeys(memberRecords, id, [], 10)].length, 1, 'the removal waits');
  answer();
  await deleting;
  await removed(id);
  await second.store.durable();
  assert.deepEqual([...second.store.listPartition(id, 10)], []);
});

test('when a workspace is deleted, its removal also covers the noted removals of its notebooks', async (t) => {
  const { store } = await temporaryStore(t);
  const removals = new Removals(store, assert.ifError, (_, home) => home !== undefined);
  const removed: string[] = [];
  removals.define('notebook', (_, id) => {
    removed.push(id);
    return true;
  });
  const notebook = (workspaceId: string) => ({ kind: 'notebook', workspaceId, home: 'nb', id: 'nb' });
  store.write((tx) => {
    removals.add(tx, removalOf('ws_1'));
    for (const id of ['ws_1', 'ws_2']) removals.add(tx, notebook(id));
  });
  await eventually('none is noted', () => !['ws_1', 'ws_2'].some((id) => removals.isPending(notebook(id))));
  removals[Symbol.dispose]();
  assert.deepEqual(removed, ['nb'], 'of the workspace that was not deleted');
  assert.equal(removals.isPending(removalOf('ws_1')), true);
});
