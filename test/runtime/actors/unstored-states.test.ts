import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { box, put, startBoxes, WORKSPACE } from './boxes.ts';

/** Starts boxes and fills the box `a`, which is then stored. */
async function filledBox(t: TestContext) {
  const stores = await temporaryStore(t);
  const boxes = startBoxes(t, stores.store);
  boxes.actors.spawn(box('a'), { id: 'a' });
  boxes.actors.ask(box('a'), put('a hat'));
  await stores.store.durable();
  return { ...boxes, ...stores };
}

function storedValue(store: Store): unknown {
  return store.get(actorSnapshots, WORKSPACE, 'box', 'a')?.value;
}

test('moving into a state that is not stored commits nothing, nor does moving back', async (t) => {
  const { actors, store } = await filledBox(t);
  const heard: unknown[] = [];
  actors.on((_, notice, committed) => heard.push([notice.type, committed]));
  assert.equal(actors.ask(box('a'), { type: 'lift' }).value, 'lifted');
  assert.equal(store.durable(), undefined);
  assert.deepEqual(heard, [['box.lifted', undefined]], 'nobody has to wait to hear of it');
  actors.ask(box('a'), { type: 'lower' });
  assert.equal(store.durable(), undefined);
  assert.equal(storedValue(store), 'full');
});

test('after a restart, an actor in a state that is never stored is in its last stored state', async (t) => {
  const { actors, store, runtime, reopen } = await filledBox(t);
  actors.ask(box('a'), { type: 'lift' });
  await store.durable();
  runtime.stopAll();
  const again = startBoxes(t, await reopen());
  assert.equal(again.actors.peek(box('a'))?.snapshot.value, 'full');
  assert.equal(again.actors.restore(box('a'))?.snapshot.context.restores, 1);
});

test('an actor that leaves a state that is never stored is stored if it has changed', async (t) => {
  const { actors, store } = await filledBox(t);
  actors.ask(box('a'), { type: 'lift' });
  actors.ask(box('a'), { type: 'take' });
  await store.durable();
  assert.equal(storedValue(store), 'empty');
});

test('an actor that was never stored is stored in any state', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a hat'));
  actors.ask(box('a'), { type: 'lift' });
  await store.durable();
  assert.equal(storedValue(store), 'lifted');
  actors.ask(box('a'), { type: 'lower' });
  await store.durable();
  assert.equal(storedValue(store), 'full');
});

test('reading an actor waits for the commit of its turn, even if the state itself is not stored', async (t) => {
  const { actors, store } = await filledBox(t);
  const look = () => store.observe(() => actors.peek(box('a'))).uncommitted;
  store.write((tx) => tx.remove(actorSnapshots, WORKSPACE, 'box', 'other'));
  actors.ask(box('a'), { type: 'lift' });
  assert.equal(look(), store.durable());
  assert.notEqual(look(), undefined);
  await store.durable();
  assert.equal(look(), undefined);
});
