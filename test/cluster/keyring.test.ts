import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { readKeyring } from '#src/datasource/keys/keyring.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { listSealedBy, putSealed, readSealed } from '#src/datasource/keys/sealed-connections.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { SYSTEM } from '#storage/keys.ts';
import { keyChecks } from '#storage/records/datasources.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { sealedSecretName } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import { sealedText } from '#test/support/store/sealed.ts';
import { sharedStore, temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

const place = (workspaceId: string, n: number) => ({ workspaceId, slug: `s${n}`, revision: 1 });

/** Two workers with one keyring; workspaces and notebooks whose ids end in `b` are at home in the second. */
async function open(t: TestContext, second: (worker: Cluster) => Cluster = (worker) => worker) {
  const { store, path } = await temporaryStore(t);
  const file = join(temporaryDirectory(t), 'keyring.json');
  await KeyringStore.open(store, file); // as the primary does before its workers start
  const workers = testCluster(2, (workspaceId, id = workspaceId) => (id.endsWith('b') ? 1 : 0));
  const openWorker = async (cluster: Cluster) => {
    const own = await sharedStore(t, path);
    return { store: own, keys: await KeyringStore.open(own, file, cluster) };
  };
  return { file, a: await openWorker(workers[0]!), b: await openWorker(second(workers[1]!)), workers };
}

interface Keeper {
  readonly store: Store;
  readonly keys: KeyringStore;
}

async function seal({ store, keys }: Keeper, workspaceId: string, count: number): Promise<void> {
  store.write((tx) => {
    for (let n = 0; n < count; n++) putSealed(tx, keys.ring, place(workspaceId, n), sealedText(n));
  });
  await store.durable();
}

test('a rotation in one worker makes every worker seal the records of its own workspaces again, and all can be opened', async (t) => {
  const { a, b } = await open(t);
  await seal(a, 'ws_a', 3);
  await seal(b, 'ws_1b', 120);
  await seal(a, 'ws_2a', 2);
  await seal(b, 'ws_3b', 2);
  const before = a.keys.ring.active;
  const writesOfOther = new Set<string>();
  a.store.beforeCommit(() => {
    for (const { writes } of [a.store.openTurn()])
      for (const { key } of writes.values())
        if (String(key[0]).endsWith('b')) writesOfOther.add(String(key[0]));
  });
  const active = await a.keys.add();
  assert.equal(b.keys.ring.active, active, 'a new key is known once the answer may go');
  await a.keys.rotate();
  for (const keeper of [a, b]) {
    keeper.store.refresh();
    assert.deepEqual(listSealedBy(keeper.store, before, 10), []);
    for (const [workspaceId, count] of [
      ['ws_a', 3],
      ['ws_1b', 120],
    ] as const)
      for (let n = 0; n < count; n++)
        assert.deepEqual(readSealed(keeper.store, keeper.keys, place(workspaceId, n)), sealedText(n));
  }
  assert.deepEqual([...writesOfOther], [], 'nobody writes what is at home elsewhere');
  assert.deepEqual([...a.store.listKeys(keyChecks, SYSTEM, [], 10)], [[active]]);
});

test('a key that seals a record of any workspace cannot be deleted, and a deleted key is gone in every worker', async (t) => {
  const { file, a, b } = await open(t);
  await seal(b, 'ws_b', 1);
  const before = a.keys.ring.active;
  await a.keys.add();
  await assert.rejects(a.keys.delete(before), { code: 'key_in_use' });
  assert.equal(a.keys.states().find(({ id }) => id === before)?.sealed, 1);
  await a.keys.rotate();
  await a.keys.delete(before);
  for (const keys of [a.keys.ring, b.keys.ring, readKeyring(file)]) assert.ok(!keys.keys.has(before));
});

test('a worker opens a connection whose key another worker has just added', async (t) => {
  const deaf = (worker: Cluster): Cluster => ({ ...worker, onAsked: () => undefined });
  const { a, b } = await open(t, deaf);
  await a.keys.add();
  await seal(a, 'ws_a', 1);
  assert.notEqual(b.keys.ring.active, a.keys.ring.active);
  b.store.refresh();
  assert.deepEqual(readSealed(b.store, b.keys, place('ws_a', 0)), sealedText(0));
});

test('a key is not deleted while records are sealed with it: the rotation is refused, and can be repeated', async (t) => {
  const { a, b, workers } = await open(t, (worker) => ({
    ...worker,
    onAsked: (topic, answer) => worker.onAsked(topic, topic === 'seal-again' ? () => false : answer),
  }));
  await seal(b, 'ws_b', 1);
  const before = a.keys.ring.active;
  await a.keys.add();
  await assert.rejects(a.keys.rotate(), { code: 'unavailable' });
  assert.ok(a.store.get(keyChecks, SYSTEM, before) !== undefined);
  workers[0]!.takeAll();
  await a.keys.rotate();
  assert.deepEqual(listSealedBy(a.store, before, 10), []);
});

test('a worker that takes over workspaces while the keyring is unreadable continues with its known keys', async (t) => {
  const { a, b, file, workers } = await open(t);
  await seal(a, 'ws_a', 1);
  const { active } = b.keys.ring;
  rmSync(file);
  workers[1]!.takeAll();
  assert.equal(b.keys.ring.active, active);
  b.store.refresh(); // as before each request
  assert.deepEqual(readSealed(b.store, b.keys, place('ws_a', 0)), sealedText(0));
});

test('the home of a notebook seals its secrets again, or the home of the workspace once the notebook is deleted', async (t) => {
  const { a, b } = await open(t);
  a.store.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, 'ws_a'));
  const secretOf = (workspaceId: string, notebookId: string) => ({
    ...place(workspaceId, 0),
    slug: sealedSecretName(notebookId, 'TOKEN'),
  });
  const places = [
    secretOf('ws_a', 'nb_a'),
    secretOf('ws_a', 'nb_b'),
    secretOf('ws_gone_a', 'nb_b'),
    place('ws_a', 1),
  ];
  a.store.write((tx) => {
    for (const one of places) putSealed(tx, a.keys.ring, one, sealedText(1));
  });
  await a.store.durable();
  const before = a.keys.ring.active;
  const written = [a, b].map(({ store }) => {
    const slugs = new Set<string>();
    store.beforeCommit(() => {
      for (const { key } of store.openTurn().writes.values())
        if (key[1] === 'sealed-connection') slugs.add(`${key[0]} ${key[2]}`);
    });
    return slugs;
  });
  await a.keys.add();
  await a.keys.rotate();
  assert.deepEqual(listSealedBy(a.store, before, 10), []);
  assert.deepEqual(
    written.map((slugs) => [...slugs].sort()),
    [
      ['ws_a notebook-secret:nb_a:TOKEN', 'ws_a s1', 'ws_gone_a notebook-secret:nb_b:TOKEN'],
      ['ws_a notebook-secret:nb_b:TOKEN'],
    ],
  );
});
