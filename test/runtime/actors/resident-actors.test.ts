import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { SYSTEM } from '#storage/keys.ts';
import { residentActors } from '#storage/records/actor-snapshots.ts';
import { commitElsewhere } from '#test/support/store/commit-elsewhere.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';
import { BOX_VERSION, box, put, startBoxes } from './boxes.ts';

/**
 * The boxes of two workers, each with a store of its own on the same files; `living` are the
 * workers that have not ended.
 */
async function twoWorkers(t: TestContext) {
  const { path } = await temporaryStore(t);
  const living = new Set(['first', 'second']);
  const open = async (own: string) => {
    const store = await sharedStore(t, path);
    const owners = {
      own,
      livesElsewhere: (owner: string) => owner !== own && living.has(owner),
      owns: () => true,
    };
    const { actors } = startBoxes(t, store, BOX_VERSION, owners);
    const fill = async (id: string) => {
      actors.spawn(box(id), { id });
      actors.ask(box(id), put('a cat'));
      await store.durable();
    };
    const counted = () => {
      store.refresh();
      return actors
        .residentsOfAll()
        .map(({ id }) => id)
        .sort();
    };
    return { store, actors, fill, counted };
  };
  return { first: await open('first'), second: await open('second'), living, path };
}

test('actors are counted over all workers as long as they own something', async (t) => {
  const { first, second } = await twoWorkers(t);
  await first.fill('b1');
  await second.fill('b2');
  assert.deepEqual(
    [first.counted(), second.counted()],
    [
      ['b1', 'b2'],
      ['b1', 'b2'],
    ],
  );
  first.actors.ask(box('b1'), { type: 'take' });
  await first.store.durable();
  assert.deepEqual([first.counted(), second.counted()], [['b2'], ['b2']]);
});

test('residents of a dead worker are not counted, and are removed in the next shared turn', async (t) => {
  const { first, second, living } = await twoWorkers(t);
  await first.fill('b1');
  living.delete('first');
  assert.deepEqual(second.counted(), []);
  living.add('first');
  assert.deepEqual(second.counted(), ['b1'], 'outside of a shared turn it stays');
  living.delete('first');
  second.store.decide(() => void second.actors.residentsOfAll());
  await second.store.durable();
  living.add('first');
  assert.deepEqual(second.counted(), []);
});

test('when actors start in several workers at once, each start counts all earlier starts', async (t) => {
  const { first, second } = await twoWorkers(t);
  const limit = 3;
  const begin = (worker: typeof first, id: string) =>
    worker.store.decide(() => {
      if (worker.actors.residentsOfAll().length >= limit) return;
      worker.actors.spawn(box(id), { id });
      worker.actors.ask(box(id), put('a cat'));
    });
  for (let n = 0; n < 20; n++) {
    begin(first, `a${n}`);
    begin(second, `b${n}`);
    if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([first.store.durable(), second.store.durable()]);
  assert.equal(first.counted().length, limit);
});

test('a session that wakes without a request counts the sessions of other workers in the same turn', async (t) => {
  const { first, living, path } = await twoWorkers(t);
  living.add('third');
  assert.deepEqual(first.actors.residentsOfAll(), []);
  commitElsewhere(path, [residentActors, 'third', SYSTEM, 'box', 'ws_1', 'b3']);
  assert.deepEqual(
    first.actors.residentsOfAll().map(({ id }) => id),
    ['b3'],
  );
});
