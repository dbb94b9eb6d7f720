import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_REMEMBERED_ACTORS } from '#src/runtime/actors/remembered-actors.ts';
import { statePath } from '#src/runtime/actors/state-path.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { BOX_VERSION, box, put, startBoxes, WORKSPACE } from './boxes.ts';

const ALL = { limit: 100, ended: false };

test('the trail of an actor shows the state after each event, and refusals with their code', async (t) => {
  const { runtime, actors } = startBoxes(t, (await temporaryStore(t)).store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a secret'));
  assert.throws(() => actors.ask(box('a'), put('another secret')));
  assert.throws(() => actors.check(box('a'), put('another secret')));
  actors.ask(box('a'), { type: 'take' });
  const trail = runtime.detail('box', box('a'))?.trail ?? [];
  assert.deepEqual(
    trail.map(({ at: _, ...entry }) => entry),
    [
      { type: 'put', from: 'empty', to: 'full' },
      { type: 'put', from: 'full', to: 'full', refused: 'session_busy' },
      { type: 'put', from: 'full', to: 'full', refused: 'session_busy' },
      { type: 'take', from: 'full', to: 'empty' },
    ],
  );
  assert.doesNotMatch(JSON.stringify(runtime.detail('box', box('a'))), /secret/);
});

test('a trail shows the own event of an actor whose change makes another actor of its kind move at once', async (t) => {
  const { runtime, actors } = startBoxes(t, (await temporaryStore(t)).store);
  for (const id of ['a', 'b']) actors.spawn(box(id), { id });
  actors.on((_, { type }) => {
    if (type === 'box.filled') actors.ask(box('b'), { type: 'touch' });
  });
  actors.ask(box('a'), put('a hat'));
  const events = (id: string) => runtime.detail('box', box(id))?.trail.map(({ type }) => type);
  assert.deepEqual([events('a'), events('b')], [['put'], ['touch']]);
});

test('a trail keeps the last 32 events', async (t) => {
  const { runtime, actors } = startBoxes(t, (await temporaryStore(t)).store);
  actors.spawn(box('a'), { id: 'a' });
  for (let i = 0; i < 40; i++) actors.ask(box('a'), { type: 'touch' });
  actors.ask(box('a'), put('a hat'));
  const trail = runtime.detail('box', box('a'))?.trail ?? [];
  assert.deepEqual([trail.length, trail[0]?.type, trail.at(-1)?.to], [32, 'touch', 'full']);
});

test('the detail of an actor lists the commands that its state takes and refuses, with advice', async (t) => {
  const { runtime, actors } = startBoxes(t, (await temporaryStore(t)).store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), put('a hat'));
  const { takes, refuses } = runtime.detail('box', box('a'))!;
  assert.deepEqual(takes, ['break', 'burn', 'lift', 'restored', 'take']);
  assert.deepEqual(
    refuses.map(({ type, code, advice }) => [type, code, advice !== null]),
    [['put', 'session_busy', true]],
  );
});

test('inspecting a stored actor restores nothing', async (t) => {
  const { store } = await temporaryStore(t);
  const times = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-02T00:00:00.000Z' };
  const context = { id: 'a', thing: 'a hat', restores: 0 };
  const machine = { machine: 'box', machineVersion: BOX_VERSION, revision: 7, value: 'full', context };
  store.write((tx) => tx.put(actorSnapshots, { ...machine, ...times }, WORKSPACE, 'box', 'a'));
  const { runtime, owned } = startBoxes(t, store);
  const detail = runtime.detail('box', box('a'));
  assert.deepEqual([detail?.presence, detail?.path, detail?.revision], ['stored', 'full', 7]);
  assert.deepEqual([[...runtime.inspect()], owned.taken], [[], []]);
});

test('an actor that has ended is remembered with its trail, and refused commands to it are noted', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), { type: 'burn' });
  await store.durable();
  assert.deepEqual(runtime.list(WORKSPACE, ALL).items, []);
  const [item] = runtime.list(WORKSPACE, { ...ALL, ended: true }).items;
  assert.deepEqual([item?.id, item?.presence, item?.path], ['a', 'ended', 'ashes']);
  assert.throws(() => actors.ask(box('a'), put('a hat')));
  const trail = runtime.detail('box', box('a'))?.trail ?? [];
  assert.deepEqual(
    trail.map(({ type, refused }) => [type, refused]),
    [
      ['burn', undefined],
      ['put', 'session_closed'],
    ],
  );
});

test('an actor that threw is remembered as failed, until it is restored with its trail', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  actors.ask(box('a'), { type: 'touch' });
  assert.throws(() => actors.ask(box('a'), { type: 'break' }));
  assert.equal(runtime.detail('box', box('a'))?.presence, 'failed');
  actors.ask(box('a'), put('a hat'));
  const detail = runtime.detail('box', box('a'));
  assert.deepEqual(
    [detail?.presence, detail?.trail[0]?.type, detail?.trail.at(-1)?.type],
    ['live', 'touch', 'put'],
  );
  assert.equal(runtime.list(WORKSPACE, { ...ALL, ended: true }).items.length, 1);
});

test('an actor that was deleted is not remembered', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  actors.ask(box('a'), { type: 'burn' });
  await store.durable();
  store.write((tx) => actors.erase(tx, box('a')));
  assert.deepEqual(runtime.list(WORKSPACE, { ...ALL, ended: true }).items, []);
  assert.equal(runtime.detail('box', box('a')), undefined);
});

test('the last thousand actors that ended are remembered', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  for (let i = 0; i < MAX_REMEMBERED_ACTORS + 5; i++) {
    actors.spawn(box(`b${i}`), { id: `b${i}` });
    actors.ask(box(`b${i}`), { type: 'burn' });
  }
  await store.durable();
  const { counts } = runtime.list(WORKSPACE, { ...ALL, ended: true });
  assert.deepEqual(counts, [{ kind: 'box', state: 'ashes', count: MAX_REMEMBERED_ACTORS }]);
  assert.equal(runtime.list(WORKSPACE, { ...ALL, ended: true, q: 'b4' }).items[0]?.id, 'b40');
});

test('actors are paged, filtered and counted, without those of other workspaces', async (t) => {
  const { runtime, actors, bags } = startBoxes(t, (await temporaryStore(t)).store);
  const elsewhere = { ...box('other'), workspaceId: 'ws_2' as typeof WORKSPACE };
  actors.spawn(elsewhere, { id: 'other' });
  for (const id of ['c', 'a', 'b']) actors.spawn(box(id), { id });
  bags.spawn(box('a'), { id: 'a' });
  actors.ask(box('b'), put('a hat'));
  const ids = (query: object) => {
    const { items, nextCursor } = runtime.list(WORKSPACE, { ...ALL, ...query });
    return [...items.map(({ kind, id }) => `${kind}/${id}`), nextCursor];
  };
  assert.deepEqual(ids({ limit: 2 }), ['bag/a', 'box/a', 'box/a']);
  assert.deepEqual(ids({ limit: 2, after: 'box/a' }), ['box/b', 'box/c', null]);
  assert.deepEqual(ids({ kind: 'box', state: 'empty' }), ['box/a', 'box/c', null]);
  assert.deepEqual(ids({ q: 'A' }), ['bag/a', 'box/a', null]);
  assert.deepEqual(runtime.list(WORKSPACE, { ...ALL, kind: 'bag' }).counts, [
    { kind: 'bag', state: 'empty', count: 1 },
    { kind: 'box', state: 'empty', count: 2 },
    { kind: 'box', state: 'full', count: 1 },
  ]);
});

test('a state is shown as a path, and parallel regions next to each other', () => {
  assert.equal(statePath({ live: { busy: 'running' } }), 'live.busy.running');
  assert.equal(statePath({ a: 'one', b: { c: 'two' } }), 'a.one b.c.two');
});
