import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { BOX_VERSION, type Boxes, box, put, startBoxes, WORKSPACE } from './boxes.ts';

interface Worker extends Boxes {
  /** The ids of boxes that are at home here; '' stands for the workspace. */
  readonly homes: Set<string>;
}

/** The boxes of two workers that share a store and live. */
async function twoWorkers(t: TestContext) {
  const { store } = await temporaryStore(t);
  const [first, second] = ['first', 'second'].map((own): Worker => {
    const homes = new Set<string>();
    const boxes = startBoxes(t, store, BOX_VERSION, {
      own,
      livesElsewhere: (owner) => owner !== own,
      owns: (_workspaceId, id = '') => homes.has(id),
    });
    return { ...boxes, homes };
  });
  return { first: first!, second: second!, store };
}

function inMemory({ runtime }: Boxes): string[] {
  return [...runtime.inspect()].map(({ kind, id }) => `${kind} ${id}`).sort();
}

const AWAY = /An actor comes into memory only in the worker that is its home\. Broken by: b1\./;

test('an actor comes into memory only in the worker that is its home', async (t) => {
  const { first, second, store } = await twoWorkers(t);
  first.homes.add('b1');
  assert.throws(() => second.actors.spawn(box('b1'), { id: 'b1' }), AWAY);
  first.actors.spawn(box('b1'), { id: 'b1' });
  first.actors.ask(box('b1'), put('a cat'));
  await store.durable();
  assert.throws(() => second.actors.ask(box('b1'), { type: 'take' }), AWAY);
  assert.throws(() => second.actors.check(box('b1'), { type: 'take' }), AWAY);
  assert.throws(() => second.actors.tell(box('b1'), { type: 'take' }), AWAY);
  assert.throws(() => second.actors.restore(box('b1')), AWAY);
  assert.deepEqual(inMemory(second), []);
  assert.deepEqual(second.owned.taken, [], 'nothing was told that it had been restored');
  assert.equal(second.actors.peek(box('b1'))?.snapshot.value, 'full');
  assert.equal(second.actors.tell(box('b2'), { type: 'take' }), false, 'there is no such actor anywhere');
});

test('an actor whose kind names no home has the home of its workspace', async (t) => {
  const { first, second } = await twoWorkers(t);
  first.homes.add('');
  second.homes.add('b1');
  assert.throws(() => second.bags.spawn(box('b1'), { id: 'b1' }), AWAY);
  first.bags.spawn(box('b1'), { id: 'b1' });
  assert.deepEqual(inMemory(first), ['bag b1']);
});

test('an actor in memory takes commands until it leaves, even when its home is about to move', async (t) => {
  const { first, store } = await twoWorkers(t);
  first.homes.add('b1');
  first.actors.spawn(box('b1'), { id: 'b1' });
  await store.durable();
  first.homes.clear();
  assert.equal(first.actors.ask(box('b1'), put('a cat')).value, 'full');
  first.actors.ask(box('b1'), { type: 'take' });
  await store.durable();
  first.runtime.leaveTo((_, id) => id === 'b1');
  assert.throws(() => first.actors.ask(box('b1'), put('a cat')), AWAY);
});

test('actors leave memory by their homes', async (t) => {
  const { first, store } = await twoWorkers(t);
  for (const home of ['', 'b1', 'b2']) first.homes.add(home);
  for (const id of ['b1', 'b2']) first.actors.spawn(box(id), { id });
  first.bags.spawn(box('b1'), { id: 'b1' });
  await store.durable();
  first.runtime.leaveTo((workspaceId, id) => workspaceId === WORKSPACE && id === 'b1');
  assert.deepEqual(inMemory(first), ['bag b1', 'box b2']);
  first.runtime.leaveTo((_, id) => id === undefined);
  assert.deepEqual(inMemory(first), ['box b2']);
});

test('the remembered history of an ended actor leaves with its home', async (t) => {
  const { first, store } = await twoWorkers(t);
  for (const id of ['b1', 'b2']) {
    first.homes.add(id);
    first.actors.spawn(box(id), { id });
    first.actors.ask(box(id), { type: 'burn' });
  }
  await store.durable();
  first.runtime.leaveTo((_, id) => id === 'b1');
  const { items } = first.runtime.list(WORKSPACE, { limit: 10, ended: true });
  assert.deepEqual(
    items.map(({ id }) => id),
    ['b2'],
  );
});

test('a home is active while one of its actors owns something or has just moved', async (t) => {
  const { first, store } = await twoWorkers(t);
  for (const home of ['', 'b1', 'b2', 'b3']) first.homes.add(home);
  const activeHomes = () => [...new Set([...first.runtime.activeHomes()].map(({ id = '' }) => id))].sort();
  for (const id of ['b1', 'b2']) first.actors.spawn(box(id), { id });
  await store.durable();
  assert.deepEqual(activeHomes(), [], 'empty boxes own nothing');
  first.actors.ask(box('b1'), put('a cat'));
  first.bags.spawn(box('b3'), { id: 'b3' });
  assert.deepEqual(activeHomes(), ['', 'b1']);
  await store.durable();
  assert.deepEqual(activeHomes(), ['b1']);
});

test('an actor at home here that is not in memory counts as lost, although the worker that stored it is alive', async (t) => {
  const { first, second, store } = await twoWorkers(t);
  first.homes.add('b1');
  first.actors.spawn(box('b1'), { id: 'b1' });
  first.actors.ask(box('b1'), put('a cat'));
  await store.durable();
  assert.equal(second.actors.peek(box('b1'))?.isLost, false);
  second.homes.add('b1');
  assert.equal(second.actors.peek(box('b1'))?.isLost, true);
});
