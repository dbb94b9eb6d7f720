/** The counts of objects by condition, of which each worker has those of its own slots. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { ConditionTally, unlinkCondition } from '#src/runtime/homes/condition-tally.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import { SYSTEM } from '#storage/keys.ts';
import { jobConditions } from '#storage/records/jobs.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

type Condition = 'tired' | 'lost';
const FIRST = 'ws_1';
const SECOND = 'ws_2';

test('a change of an object moves the counts, and reading them reads nothing from the store', async (t) => {
  const { tallyOf, move, reads } = await objectsOf(t);
  const tally = tallyOf(() => true);
  assert.deepEqual(counts(tally), { tired: 0, lost: 0 });
  move(tally, FIRST, 'a', 'tired');
  move(tally, FIRST, 'b', 'tired');
  move(tally, SECOND, 'c', 'lost');
  assert.deepEqual(counts(tally), { tired: 2, lost: 1 });
  move(tally, FIRST, 'a', 'lost');
  move(tally, FIRST, 'b', undefined);
  assert.deepEqual([counts(tally), reads()], [{ tired: 0, lost: 2 }, 0]);
});

test('a worker that loses slots no longer counts their objects, and the worker that takes the slots does', async (t) => {
  const { tallyOf, move, store } = await objectsOf(t);
  let owner = 1;
  const [first, second] = [tallyOf(() => owner === 1), tallyOf(() => owner === 2)];
  move(first, FIRST, 'a', 'tired');
  move(first, SECOND, 'b', 'lost');
  await store.durable();
  second.load();
  assert.deepEqual([counts(first), counts(second)], [{ tired: 1, lost: 1 }, NONE]);
  owner = 2;
  second.load();
  assert.deepEqual([counts(first), counts(second)], [NONE, { tired: 1, lost: 1 }]);
  move(second, FIRST, 'a', undefined);
  await store.durable();
  owner = 1;
  first.load();
  assert.deepEqual([counts(first), counts(second)], [{ tired: 0, lost: 1 }, NONE]);
});

test('counts that are loaded in the turn of a change have the change', async (t) => {
  const { tallyOf, move, store } = await objectsOf(t);
  const tally = tallyOf(() => true);
  move(tally, FIRST, 'a', 'tired');
  tally.load();
  assert.deepEqual(counts(tally), { tired: 1, lost: 0 });
  await store.durable();
  move(tally, FIRST, 'a', 'lost');
  tally.load();
  assert.deepEqual(counts(tally), { tired: 0, lost: 1 });
});

test('a deleted workspace is forgotten, and loading removes the entries of objects that are gone', async (t) => {
  const { tallyOf, move, store, entries, remove } = await objectsOf(t);
  const tally = tallyOf(() => true);
  move(tally, FIRST, 'a', 'tired');
  move(tally, SECOND, 'b', 'tired');
  tally.forget(FIRST);
  assert.deepEqual(counts(tally), { tired: 1, lost: 0 });
  remove('a');
  await store.durable();
  assert.equal(entries(), 2);
  tally.load();
  await store.durable();
  assert.deepEqual([counts(tally), entries()], [{ tired: 1, lost: 0 }, 1]);
  store.write((tx) => unlinkCondition(tx, jobConditions, { workspaceId: SECOND, id: 'b' }, homeOf(SECOND)));
  await store.durable();
  assert.equal(entries(), 0);
});

const NONE = { tired: 0, lost: 0 };

/** An index of objects, each with its home in its workspace. */
async function objectsOf(t: TestContext) {
  const { store } = await temporaryStore(t);
  const conditions = new Map<string, Condition | undefined>();
  let reads = 0;
  return {
    store,
    reads: () => reads,
    tallyOf: (owns: () => boolean) =>
      new ConditionTally<Condition>({
        store,
        cluster: { owns },
        index: jobConditions,
        conditions: ['tired', 'lost'],
        factsOf(workspaceId, id) {
          reads++;
          return conditions.has(id)
            ? { home: homeOf(workspaceId), condition: conditions.get(id) }
            : undefined;
        },
      }),
    move(
      tally: ConditionTally<Condition>,
      workspaceId: string,
      id: string,
      condition: Condition | undefined,
    ): void {
      conditions.set(id, condition);
      store.write((tx) => tally.move(tx, { workspaceId, id } as ActorId, homeOf(workspaceId), condition));
    },
    remove: (id: string) => conditions.delete(id),
    entries: () => [...store.listKeys(jobConditions, SYSTEM, [], 100)].length,
  };
}

function homeOf(workspaceId: string): Home {
  return { workspaceId };
}

function counts(tally: ConditionTally<Condition>): object {
  return Object.fromEntries(tally.counts());
}
