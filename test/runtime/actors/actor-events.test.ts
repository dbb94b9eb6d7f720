import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import { ActorEvents, type FollowActors } from '#src/runtime/actors/actor-events.ts';
import { PublishedStream } from '#src/runtime/events/published-stream.ts';
import { parseFrames, RecordingSink } from '#test/runtime/events/recording-sink.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { box, put, startBoxes, WORKSPACE } from './boxes.ts';

const CONSOLES = 10;
const TRANSITIONS = 1_000;
/** The data of an event about one actor. */
const MAX_FRAME_BYTES = 600;
const GAP_MS = 100;
const COUNTS_GAP_MS = 1_000;

/** How long a stream stays without followers. */
const LINGER_MS = 30_000;

const makeStream = () =>
  new PublishedStream<ActorStreamEnvelope>({
    replayed: { type: 'actors.replayed', data: {} },
    resync: (reason) => ({ type: 'actors.resync-required', data: { reason } }),
  });

async function startEvents(t: TestContext) {
  const { store } = await temporaryStore(t);
  const boxes = startBoxes(t, store);
  const events = new ActorEvents({ runtime: boxes.runtime, store }, makeStream, undefined);
  t.after(() => events[Symbol.dispose]());
  const follow = async (choice: Partial<FollowActors> = {}) => {
    const sink = new RecordingSink();
    const attach = await events.follow(WORKSPACE, { moves: true, lastEventId: '', ...choice });
    const subscription = attach(sink);
    return {
      sink,
      subscription,
      events: () => parseFrames(sink.text).map(({ event }) => event as unknown as ActorStreamEnvelope),
    };
  };
  return { ...boxes, follow, store };
}

/** Returns how often an action with a gap after it can happen in the time since `startedAtMs`. */
const timesSince = (startedAtMs: number, gapMs: number) => 2 + (performance.now() - startedAtMs) / gapMs;

test('a thousand transitions in a burst cost each of ten consoles a few frames, and each frame is encoded once for all', async (t) => {
  const { actors, follow } = await startEvents(t);
  actors.spawn(box('a'), { id: 'a' });
  const consoles = await Promise.all(Array.from({ length: CONSOLES }, () => follow()));
  const writes = consoles.map(({ sink }) => sink.writes);
  const openingBytes = consoles[0]!.sink.text.length;
  const startedAtMs = performance.now();
  for (let i = 0; i < TRANSITIONS; i++) {
    actors.ask(box('a'), { type: 'touch' });
    if (i % 10 === 0) await nextTurn();
  }
  actors.ask(box('a'), put('a hat'));
  const [first, ...others] = consoles;
  await eventually('the last move is told', () =>
    first!.events().some((event) => event.type === 'actor.moved' && event.data.to === 'full'),
  );
  const mostFrames = timesSince(startedAtMs, GAP_MS);
  const moves = first!.events().filter(({ type }) => type === 'actor.moved');
  assert.ok(moves.length <= mostFrames, `${moves.length} frames`);
  assert.ok(first!.sink.writes - writes[0]! <= mostFrames, `${first!.sink.writes} writes`);
  const bytes = first!.sink.text.length - openingBytes;
  assert.ok(bytes <= mostFrames * MAX_FRAME_BYTES, `${bytes} bytes`);
  for (const { sink } of others) assert.equal(sink.text.slice(-bytes), first!.sink.text.slice(-bytes));
  t.diagnostic(`${moves.length} frames and ${bytes} bytes for each console`);
});

test('a command that is refused a thousand times is one event with the number of refusals', async (t) => {
  const { actors, follow } = await startEvents(t);
  actors.spawn(box('a'), { id: 'a' });
  const { events } = await follow();
  const startedAtMs = performance.now();
  for (let i = 0; i < TRANSITIONS; i++) {
    assert.throws(() => actors.ask(box('a'), { type: 'take' }));
    if (i % 10 === 0) await nextTurn();
  }
  const refusals = () => events().flatMap((event) => (event.type === 'actor.refused' ? [event.data] : []));
  const sum = () => refusals().reduce((total, { count }) => total + count, 0);
  await eventually('all are told', () => sum() === TRANSITIONS);
  assert.ok(refusals().length <= timesSince(startedAtMs, GAP_MS), `${refusals().length} events`);
  assert.deepEqual([refusals()[0]?.state, refusals()[0]?.code], ['empty', 'session_not_ready']);
});

test('an overview gets counts and refusals once a second instead of the moves of a thousand actors', async (t) => {
  const { actors, follow } = await startEvents(t);
  const overview = await follow({ moves: false });
  const startedAtMs = performance.now();
  for (let i = 0; i < TRANSITIONS; i++) actors.spawn(box(String(i)), { id: String(i) });
  assert.throws(() => actors.ask(box('0'), { type: 'take' }));
  await eventually('all are counted', () =>
    overview
      .events()
      .some(({ type, data }) => type === 'actors.counts' && data.counts[0]?.count === TRANSITIONS),
  );
  const [snapshot, replayed, ...rest] = overview.events();
  assert.deepEqual([snapshot?.type, replayed?.type], ['actors.snapshot', 'actors.replayed']);
  const told = rest.filter(({ type }) => type === 'actors.counts');
  assert.ok(told.length <= timesSince(startedAtMs, COUNTS_GAP_MS), `${told.length} counts`);
  assert.deepEqual(told.at(-1)?.data, {
    counts: [{ kind: 'box', state: 'empty', count: TRANSITIONS }],
    moved: ['box'],
  });
  assert.equal(rest.filter(({ type }) => type === 'actor.refused').length, 1);
  assert.ok(rest.every(({ type }) => type === 'actors.counts' || type === 'actor.refused'));
});

test('a follower of one actor gets its transitions and its end, and nothing of other actors', async (t) => {
  const { actors, follow } = await startEvents(t);
  for (const id of ['a', 'b']) actors.spawn(box(id), { id });
  const { events } = await follow({ kind: 'box', id: 'a' });
  actors.ask(box('b'), put('a hat'));
  actors.ask(box('a'), { type: 'burn' });
  await eventually('it has left', () => events().some(({ type }) => type === 'actor.left'));
  const about = events().flatMap(({ data }) => ('id' in data ? [data.id] : []));
  assert.deepEqual([...new Set(about)], ['a']);
});

test('when an actor leaves memory and comes back, its later events follow the event of its leaving', async (t) => {
  const { actors, follow, store } = await startEvents(t);
  actors.spawn(box('a'), { id: 'a' });
  const { events } = await follow();
  actors.ask(box('a'), put('a hat'));
  store.write((tx) => actors.erase(tx, box('a')));
  actors.spawn(box('a'), { id: 'a' });
  await eventually('it has come back', () => events().length >= 5);
  const told = events()
    .slice(2)
    .map(({ type, data }) => [type, 'from' in data ? data.from : undefined]);
  assert.deepEqual(told, [
    ['actor.moved', 'empty'],
    ['actor.left', undefined],
    ['actor.moved', null],
  ]);
});

test('actors are no longer watched some time after the last follower has left', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime, actors } = startBoxes(t, store);
  const events = new ActorEvents({ runtime, store }, makeStream, undefined);
  actors.spawn(box('a'), { id: 'a' });
  assert.equal(runtime.watch.isWatched, false);
  const attach = await events.follow(WORKSPACE, { moves: true, lastEventId: '' });
  const subscription = attach(new RecordingSink());
  assert.equal(runtime.watch.isWatched, true);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  subscription.close();
  t.mock.timers.tick(LINGER_MS - 1);
  assert.equal(runtime.watch.isWatched, true);
  t.mock.timers.tick(1);
  assert.equal(runtime.watch.isWatched, false);
});
