import assert from 'node:assert/strict';
import test from 'node:test';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { box, committedStates, put, startBoxes } from './boxes.ts';

test('a watcher is notified of a change once it is committed, and not before', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  const heard: unknown[] = [];
  actors.watch(box('a'), (notice) => heard.push([notice, committedStates(store)]));
  actors.ask(box('a'), put('a hat'));
  assert.deepEqual([heard, committedStates(store)], [[], { a: 'empty' }]);
  await store.durable();
  assert.deepEqual(heard, [[{ type: 'box.filled', thing: 'a hat' }, { a: 'full' }]]);
});

test('a watcher is notified of its own actor only, until it stops', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  const heard: string[] = [];
  for (const id of ['a', 'b']) actors.spawn(box(id), { id });
  const stop = actors.watch(box('a'), ({ type }) => heard.push(type));
  actors.watch(box('a'), ({ type }) => heard.push(`again ${type}`));
  actors.ask(box('b'), put('a hat'));
  actors.ask(box('a'), put('a rabbit'));
  await store.durable();
  stop();
  actors.ask(box('a'), { type: 'take' });
  await store.durable();
  assert.deepEqual(heard, ['box.filled', 'again box.filled', 'again box.emptied']);
});

test('a listener of an actor kind gets the notice within the turn, with a promise of the commit', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  const heard: unknown[] = [];
  actors.on((address, notice, committed) => {
    heard.push([address, notice]);
    void committed?.then(() => heard.push(committedStates(store)));
  });
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a hat'));
  assert.deepEqual(heard, [[box('a'), { type: 'box.filled', thing: 'a hat' }]]);
  await store.durable();
  assert.deepEqual(heard[1], { a: 'full' });
});

test('a listener or watcher that throws is logged, and the others still get the notice', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, logged } = startBoxes(t, store);
  const heard: string[] = [];
  const broken = () => {
    throw new Error('deaf');
  };
  actors.on(broken);
  actors.on((_, { type }) => heard.push(`listener ${type}`));
  actors.spawn(box('a'), { id: 'a' });
  actors.watch(box('a'), broken);
  actors.watch(box('a'), ({ type }) => heard.push(`watcher ${type}`));
  actors.ask(box('a'), put('a hat'));
  await store.durable();
  assert.deepEqual(heard, ['listener box.filled', 'watcher box.filled']);
  assert.deepEqual(
    logged.map(({ level, msg, actor }) => ({ level, msg, actor })),
    [
      { level: 'error', msg: 'a listener failed', actor: 'ws_1/box/a' },
      { level: 'error', msg: 'a listener failed', actor: 'ws_1/box/a' },
    ],
  );
});
