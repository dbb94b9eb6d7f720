import assert from 'node:assert/strict';
import test from 'node:test';
import type { Actor } from '#src/contract/wire/actor.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import {
  BOX_VERSION,
  box,
  committedStates,
  put,
  refusedWith,
  startBoxes,
  thingIn,
  WORKSPACE,
} from './boxes.ts';

test('the moves of several actors in one turn are one commit', async (t) => {
  const stores = await temporaryStore(t);
  const { actors, runtime } = startBoxes(t, stores.store);
  for (const id of ['a', 'b', 'c']) actors.spawn(box(id), { id });
  actors.ask(box('a'), put('a hat'));
  actors.ask(box('a'), { type: 'take' });
  actors.ask(box('a'), put('a rabbit'));
  actors.ask(box('b'), put('a scarf'));
  assert.deepEqual(committedStates(stores.store), {});
  await stores.store.durable();
  assert.deepEqual(committedStates(stores.store), { a: 'full', b: 'full', c: 'empty' });
  runtime.stopAll();
  const store = await stores.reopen();
  const saved = store.get(actorSnapshots, WORKSPACE, 'box', 'a');
  assert.deepEqual([saved?.revision, saved?.machine, saved?.machineVersion], [1, 'box', BOX_VERSION]);
  assert.deepEqual([saved?.value, saved?.context], ['full', { id: 'a', thing: 'a rabbit', restores: 0 }]);
});

test('a snapshot and a record of one turn are in one commit', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  const seen: unknown[] = [];
  store.beforeCommit(() =>
    seen.push([committedStates(store), store.get(actorSnapshots, WORKSPACE, 'box', 'a')?.value]),
  );
  actors.ask(box('a'), put('a hat'));
  await store.durable();
  assert.deepEqual(seen, [[{ a: 'empty' }, 'full']], 'the snapshot joins the turn before it is committed');
});

test('opening a store with ten thousand actors brings no actor into memory', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => {
    for (let i = 0; i < 10_000; i++)
      tx.put(actorSnapshots, storedBox(`b${i}`, 'full'), WORKSPACE, 'box', `b${i}`);
  });
  await store.durable();
  const { runtime, actors, owned } = startBoxes(t, store);
  assert.deepEqual([[...runtime.inspect()], actors.residents()], [[], []]);
  assert.equal(actors.peek(box('b7'))?.live, false);
  assert.deepEqual([[...runtime.inspect()], owned.taken], [[], []], 'looking restores nothing');
  actors.ask(box('b7'), { type: 'take' });
  assert.deepEqual([[...runtime.inspect()].map(({ id }) => id), owned.taken], [['b7'], ['b7']]);
});

test('a restored actor gets one event about its restoration, and owns the resources of its state again', async (t) => {
  const stores = await temporaryStore(t);
  const before = startBoxes(t, stores.store);
  before.actors.spawn(box('a'), { id: 'a' });
  before.actors.ask(box('a'), put('a hat'));
  await stores.store.durable();
  before.runtime.stopAll();
  assert.deepEqual(before.owned, { taken: ['a'], released: ['a'] });

  const { actors, owned, runtime } = startBoxes(t, await stores.reopen());
  assert.deepEqual([actors.peek(box('a'))?.live, thingIn(actors, 'a')], [false, 'a hat']);
  assert.equal(actors.restore(box('a'))?.live, true);
  actors.restore(box('a'));
  assert.throws(() => actors.ask(box('a'), put('a rabbit')), refusedWith('session_busy', 409));
  assert.deepEqual(actors.peek(box('a'))?.snapshot.context, { id: 'a', thing: 'a hat', restores: 1 });
  assert.deepEqual(owned, { taken: ['a'], released: [] });
  assert.deepEqual(recentEventsOf(runtime, 'a'), ['restored']);
});

test('an actor whose chart has no restore event is restored without an event and without a write', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(actorSnapshots, storedBox('a', 'empty'), WORKSPACE, 'box', 'a'));
  await store.durable();
  const { actors, runtime } = startBoxes(t, store);
  const peek = actors.restore(box('a'));
  assert.deepEqual(
    [peek?.createdAt, peek?.updatedAt],
    ['2026-01-01T00:00:00.000Z', '2026-01-02T00:00:00.000Z'],
  );
  assert.deepEqual([recentEventsOf(runtime, 'a'), store.durable()], [[], undefined]);
});

test('a stored actor is not read by another version of its chart', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(actorSnapshots, storedBox('a', 'empty'), WORKSPACE, 'box', 'a'));
  const { actors } = startBoxes(t, store, BOX_VERSION + 1);
  assert.throws(() => actors.ask(box('a'), put('a hat')), /A stored box has chart version 3/);
});

test('the least recently used actors that own nothing leave memory, and come back unchanged', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  actors.spawn(box('full'), { id: 'full' });
  actors.ask(box('full'), put('a hat'));
  for (let i = 0; i < 1_000; i++) actors.spawn(box(`b${i}`), { id: `b${i}` });
  await store.durable();
  actors.restore(box('b0'));
  for (let i = 1_000; i < 1_010; i++) actors.spawn(box(`b${i}`), { id: `b${i}` });
  await store.durable();
  const inMemory = new Set([...runtime.inspect()].map(({ id }) => id));
  assert.equal(inMemory.size, 1_001);
  assert.deepEqual(
    ['full', 'b0', 'b1', 'b10', 'b11', 'b1009'].map((id) => [id, inMemory.has(id)]),
    [
      ['full', true],
      ['b0', true],
      ['b1', false],
      ['b10', false],
      ['b11', true],
      ['b1009', true],
    ],
  );
  assert.equal(actors.ask(box('b1'), put('a rabbit')).value, 'full');
});

test('any number of unsaved actors stays in memory', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  for (let i = 0; i < 1_500; i++) actors.spawn(box(`b${i}`), { id: `b${i}` });
  for (let i = 0; i < 1_500; i++) assert.equal(actors.peek(box(`b${i}`))?.live, true);
  await store.durable();
  assert.equal([...runtime.inspect()].length, 1_000);
});

test('an actor that has ended leaves memory with its commit, and is still known', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors, owned } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a hat'));
  actors.ask(box('a'), { type: 'burn' });
  assert.throws(() => actors.ask(box('a'), put('a rabbit')), refusedWith('session_closed', 409));
  await store.durable();
  assert.deepEqual([[...runtime.inspect()], owned], [[], { taken: ['a'], released: ['a'] }]);
  const peek = actors.peek(box('a'));
  assert.deepEqual([peek?.live, peek?.snapshot.value, peek?.snapshot.status], [false, 'ashes', 'done']);
  assert.throws(() => actors.ask(box('a'), put('a rabbit')), refusedWith('session_closed', 409));
  assert.deepEqual([...runtime.inspect()], [], 'asking it again does not bring it back');
});

test('an operator sees the state of an actor and the types of its last sixteen events, without their contents', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  for (let i = 0; i < 10; i++) {
    actors.ask(box('a'), put('a secret'));
    actors.ask(box('a'), { type: 'take' });
  }
  actors.ask(box('a'), put('a secret'));
  await store.durable();
  const [seen, ...others] = [...runtime.inspect()] as [Actor, ...Actor[]];
  const { since, lastEvents, ...facts } = seen;
  assert.deepEqual(
    [facts, others],
    [
      {
        kind: 'box',
        id: 'a',
        machine: 'box',
        presence: 'live',
        state: 'full',
        path: 'full',
        links: [],
        revision: 1,
      },
      [],
    ],
  );
  const types = Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? 'take' : 'put'));
  assert.deepEqual(
    lastEvents.map(({ type }) => type),
    types,
  );
  for (const time of [since, ...lastEvents.map(({ at }) => at)]) {
    assert.equal(new Date(time).toISOString(), time);
  }
  assert.doesNotMatch(JSON.stringify(seen), /secret/);
});

test('an actor that throws is logged, and only the caller of its command gets the error', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, owned, logged } = startBoxes(t, store);
  for (const id of ['a', 'b']) actors.spawn(box(id), { id });
  actors.ask(box('a'), put('a hat'));
  assert.throws(() => actors.ask(box('a'), { type: 'break' }), /the box broke/);
  assert.deepEqual(owned, { taken: ['a'], released: ['a'] }, 'what it owned is released');
  assert.deepEqual(
    logged.map(({ level, msg, actor }) => ({ level, msg, actor })),
    [{ level: 'error', msg: 'an actor failed', actor: 'ws_1/box/a' }],
  );
  actors.ask(box('b'), put('a scarf'));
  await store.durable();
  assert.deepEqual(committedStates(store), { a: 'full', b: 'full' });
});

test('an actor that threw comes back from its last good state', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, owned } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  actors.ask(box('a'), put('a hat'));
  actors.tell(box('a'), { type: 'break' });
  assert.deepEqual([actors.peek(box('a'))?.live, thingIn(actors, 'a')], [false, 'a hat']);
  assert.equal(actors.ask(box('a'), { type: 'take' }).value, 'empty');
  assert.deepEqual(owned, { taken: ['a', 'a'], released: ['a', 'a'] });
  await store.durable();
  assert.deepEqual(committedStates(store), { a: 'empty' });
});

test('an actor that cannot be created throws at the caller, and leaves nothing', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors, logged } = startBoxes(t, store);
  assert.throws(() => actors.spawn(box('a'), { id: 'a', breaks: true }), /made of nothing/);
  await store.durable();
  assert.deepEqual([actors.peek(box('a')), [...runtime.inspect()], logged.length], [undefined, [], 1]);
});

test('an actor is listed as a resident from the turn in which it becomes one', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, bags } = startBoxes(t, store);
  for (const id of ['a', 'b', 'c']) actors.spawn(box(id), { id });
  actors.ask(box('a'), put('a hat'));
  assert.deepEqual(actors.residents(), [box('a')]);
  await store.durable();
  actors.ask(box('b'), put('a scarf'));
  actors.ask(box('a'), { type: 'take' });
  assert.deepEqual([actors.residents(), bags.residents()], [[box('b')], []]);
});

test('a state counts as uncommitted until its commit, even when the actor has ended', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.spawn(box('b'), { id: 'b' });
  const uncommitted = () => store.observe(() => actors.peek(box('a'))).uncommitted;
  assert.notEqual(uncommitted(), undefined);
  await uncommitted();
  assert.deepEqual([uncommitted(), committedStates(store)], [undefined, { a: 'empty', b: 'empty' }]);
  actors.ask(box('a'), { type: 'burn' });
  const left = new Promise<void>((resolve) => setImmediate(resolve));
  await left;
  assert.equal(actors.peek(box('a'))?.live, false);
  assert.equal(committedStates(store).a, 'empty', 'its commit is under way');
  await uncommitted();
  assert.equal(committedStates(store).a, 'ashes');
});

test('stopping all actors releases their resources and keeps their stored state', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, owned, runtime } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a hat'));
  await store.durable();
  runtime.stopAll();
  assert.deepEqual([owned.released, [...runtime.inspect()], store.durable()], [['a'], [], undefined]);
  assert.deepEqual(committedStates(store), { a: 'full' });
});

function recentEventsOf(runtime: ActorRuntime, id: string): string[] {
  const seen = [...runtime.inspect()].find((actor) => actor.id === id);
  return (seen?.lastEvents ?? []).map(({ type }) => type);
}

function storedBox(id: string, value: 'empty' | 'full') {
  return {
    machine: 'box',
    machineVersion: BOX_VERSION,
    revision: 1,
    value,
    context: { id, thing: value === 'full' ? 'a hat' : null, restores: 0 },
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-02T00:00:00.000Z',
  };
}
