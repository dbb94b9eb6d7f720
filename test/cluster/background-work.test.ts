// tier: test, because it makes backups and removes hundreds of records of several workers
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import { IdempotencyStore } from '#src/http/idempotency/idempotency-store.ts';
import { BackupSchedule } from '#src/operate/maintenance/backup-schedule.ts';
import { SYSTEM } from '#storage/keys.ts';
import { idempotencyExpiries, idempotencyRecords } from '#storage/records/idempotency.ts';
import { Removals } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

/** Workspaces whose ids end in `b` are at home in worker 1, and all others in worker 0. */
const homeOf = (workspaceId: string) => (workspaceId.endsWith('b') ? 1 : 0);

const thing = (workspaceId: string, id: string, home?: string) => ({ kind: 'thing', workspaceId, home, id });

test('each worker removes deleted records of its own workspaces, and later the deleted records of a dead worker', async (t) => {
  const { store } = await temporaryStore(t);
  const [first, second] = testCluster(2, homeOf);
  const removed: string[] = [];
  const [own, other] = [first!, second!].map((worker) => {
    const removals = new Removals(store, assert.ifError, (workspaceId, id) => worker.owns(workspaceId, id));
    removals.define('thing', (workspaceId, id) => {
      removed.push(`${worker.worker} ${workspaceId} ${id}`);
      return true;
    });
    worker.onSlotsTaken(() => removals.resume());
    return removals;
  });
  store.write((tx) => {
    for (const workspaceId of ['1b', '2a', '3b', '4a'])
      for (const id of ['x', 'y']) own!.add(tx, thing(workspaceId, id));
  });
  await eventually('the first worker has done its part', () => removed.length === 4);
  await eventually('none of its own is left', () => !own!.isPending(thing('4a', 'y')));
  assert.deepEqual(removed, ['0 2a x', '0 2a y', '0 4a x', '0 4a y']);
  assert.equal(own!.isPending(thing('1b', 'x')), true, 'what another worker has to remove is still there');
  first!.takeAll();
  await eventually('the rest is removed', () => removed.length === 8);
  assert.deepEqual(removed.slice(4), ['0 1b x', '0 1b y', '0 3b x', '0 3b y']);
  await eventually('nothing is left', () => !other!.isPending(thing('3b', 'y')));
  for (const removals of [own, other]) removals![Symbol.dispose]();
});

test("each worker removes records of its own notebooks only, and later also records of a dead worker's notebooks", async (t) => {
  const { store } = await temporaryStore(t);
  const [first, second] = testCluster(2, (_, id = '') => homeOf(id));
  const removed: string[] = [];
  const [own, other] = [first!, second!].map((worker) => {
    const removals = new Removals(store, assert.ifError, (workspaceId, id) => worker.owns(workspaceId, id));
    removals.define('thing', (_, id) => {
      removed.push(`${worker.worker} ${id}`);
      return true;
    });
    worker.onSlotsTaken(() => removals.resume());
    return removals;
  });
  const foreign = Array.from({ length: 250 }, (_, n) => thing('ws', `x${n}`, 'nb_b'));
  store.write((tx) => {
    for (const removal of foreign) own!.add(tx, removal);
    own!.add(tx, thing('ws', 'own', 'nb_za'));
    own!.add(tx, thing('ws', 'of the workspace'));
  });
  await eventually('its own is removed', () => removed.length === 2);
  assert.deepEqual(removed.toSorted(), ['0 of the workspace', '0 own']);
  await eventually('nothing of its own is left', () => !own!.isPending(thing('ws', 'own', 'nb_za')));
  assert.equal(own!.isPending(foreign[0]!), true, 'of another worker it asks the store');
  assert.equal(other!.isPending(foreign[0]!), true);
  first!.takeAll();
  await eventually('the rest is removed', () => removed.length === 252);
  await eventually('nothing is left', () => !other!.isPending(foreign.at(-1)!));
  for (const removals of [own, other]) removals![Symbol.dispose]();
});

test('a removal that a failed deletion has noted is not carried out, and very many other noted removals are all carried out', async (t) => {
  const { store } = await temporaryStore(t);
  const removed: string[] = [];
  const removals = new Removals(store, assert.ifError);
  removals.define('thing', (_, id) => {
    removed.push(id);
    return true;
  });
  assert.throws(() =>
    store.write((tx) => {
      removals.add(tx, thing('ws', 'failed', 'nb'));
      throw new Error('The deletion failed.');
    }),
  );
  store.write((tx) => {
    for (let n = 0; n < 1200; n++) removals.add(tx, thing('ws', String(n), 'nb'));
  });
  await eventually('all are removed', () => removed.length === 1200);
  assert.equal(new Set(removed).size, 1200);
  assert.equal(removed.includes('failed'), false);
  removals[Symbol.dispose]();
});

test('a sweep of idempotency records skips the records of other workers, however many there are', async (t) => {
  const { store } = await temporaryStore(t);
  const clock = { ms: 1_000_000 };
  const [first, second] = testCluster(2, homeOf);
  const stores = [first!, second!].map((worker) => {
    const records = new IdempotencyStore(store, worker, () => clock.ms);
    t.after(() => records[Symbol.dispose]());
    return records;
  });
  const answer = (place: number, workspaceId: string, key: string) => {
    const begun = stores[place]!.begin({
      workspaceId: workspaceId as WorkspaceId,
      userId: 'ann' as UserId,
      method: 'POST',
      path: '/x',
      key,
      bodyHash: new Uint8Array(32),
      credential: undefined,
    });
    assert.equal(begun.kind, 'proceed');
    if (begun.kind === 'proceed')
      begun.complete({ status: 200, headers: {}, contentType: '', bytes: new Uint8Array() });
  };
  for (let n = 0; n < 450; n++) answer(1, 'ws_b', `k${n}`);
  clock.ms++;
  for (let n = 0; n < 3; n++) answer(0, 'ws_a', `k${n}`);
  await store.durable();
  const left = (workspaceId: string) => [...store.listKeys(idempotencyRecords, workspaceId, [], 1000)].length;
  clock.ms += 25 * 3_600_000;
  await stores[0]!.sweep();
  await store.durable();
  assert.deepEqual([left('ws_a'), left('ws_b')], [0, 450]);
  await stores[1]!.sweep();
  await store.durable();
  assert.deepEqual([left('ws_a'), left('ws_b')], [0, 0]);
  assert.equal([...store.listKeys(idempotencyExpiries, SYSTEM, [], 10)].length, 0);
});

test('the responsible worker makes the backups, and its successor when the responsibility moves', async (t) => {
  const { store, path } = await temporaryStore(t);
  const directory = join(temporaryDirectory(t), 'backups');
  const [first, second] = testCluster(2, () => 1);
  const made: number[] = [];
  const schedules = [first!, second!].map((worker) => {
    const schedule = new BackupSchedule({
      directory,
      everyMs: 3_600_000,
      keep: 2,
      dataDir: path,
      copyStore: async (to, compact) => {
        made.push(worker.worker);
        await store.copyTo(to, compact);
      },
      isResponsible: () => worker.owns(SYSTEM),
      log: rememberingLog().log,
    });
    t.after(() => schedule[Symbol.asyncDispose]());
    return schedule;
  });
  await Promise.all(schedules.map((schedule) => schedule.look()));
  assert.deepEqual(made, [1]);
  rmSync(directory, { recursive: true }); // so that another sweep is due
  first!.takeAll();
  await Promise.all(schedules.map((schedule) => schedule.look()));
  assert.deepEqual(made, [1, 0]);
});
