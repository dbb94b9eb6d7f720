/** Followers of a workspace's actors that are in several workers. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import type { FollowActors } from '#src/runtime/actors/actor-events.ts';
import { PublishedStream } from '#src/runtime/events/published-stream.ts';
import { openActorEvents } from '#src/start/app/open-actor-events.ts';
import type { Store } from '#storage/store.ts';
import { box, put, startBoxes, WORKSPACE } from '#test/runtime/actors/boxes.ts';
import { parseFrames, RecordingSink } from '#test/runtime/events/recording-sink.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { type TestWorker, testCluster } from '#test/support/test-cluster.ts';
import { testContext } from '#test/support/test-context.ts';

const HOME = 0;
const BURST = 6_000;

interface Options {
  readonly size?: number;
  readonly durable?: (worker: number) => Promise<void> | undefined;
}

/**
 * The first worker is the home of the workspace. Each worker has a store of its own, because no worker reads
 * records of another worker.
 */
async function startWorkers(t: TestContext, { size = 2, durable }: Options = {}) {
  const cluster = testCluster(size, () => HOME);
  return Promise.all(cluster.map((worker) => startWorker(t, worker, durable)));
}

async function startWorker(t: TestContext, cluster: TestWorker, durable: Options['durable']) {
  const { store } = await temporaryStore(t);
  const boxes = startBoxes(t, store);
  const stack = new AsyncDisposableStack();
  t.after(() => stack[Symbol.asyncDispose]());
  const ownDurable = (): Promise<void> | undefined => durable?.(cluster.worker) ?? store.durable();
  const { actorEvents, actorReporter } = openActorEvents(
    { cluster, runtime: boxes.runtime, store: testContext<Store>({ durable: ownDurable }) },
    () =>
      new PublishedStream<ActorStreamEnvelope>({
        replayed: { type: 'actors.replayed', data: {} },
        resync: (reason) => ({ type: 'actors.resync-required', data: { reason } }),
      }),
    stack,
  );
  const follow = async (choice: Partial<FollowActors> = {}) => {
    const sink = new RecordingSink();
    const attach = await actorEvents.follow(WORKSPACE, { moves: true, lastEventId: '', ...choice });
    const subscription = attach(sink);
    const events = () => parseFrames(sink.text).map(({ event }) => event as unknown as ActorStreamEnvelope);
    return { sink, subscription, events };
  };
  return { ...boxes, ...cluster, die: cluster.die, start: cluster.start, cluster, actorReporter, follow };
}

/** Returns how the boxes have moved, by their ids. */
function movesOf(events: readonly ActorStreamEnvelope[]): Record<string, string[]> {
  const moves: Record<string, string[]> = {};
  for (const event of events) {
    if (event.type !== 'actor.moved' && event.type !== 'actor.left') continue;
    const { id } = event.data;
    moves[id] ??= [];
    moves[id].push(event.type === 'actor.left' ? `left ${event.data.presence}` : event.data.to);
  }
  return moves;
}

const toEach = (n: number) => Array.from({ length: n }, (_, i) => i);

test('one subscriber sees the events of all workers, in order for each actor', async (t) => {
  const [home, other] = await startWorkers(t);
  const { events } = await home!.follow();
  for (const round of toEach(5)) {
    for (const [worker, id] of [
      [home!, 'a'],
      [other!, 'b'],
    ] as const) {
      if (round === 0) worker.actors.spawn(box(id), { id });
      worker.actors.ask(box(id), put(`hat ${round}`));
    }
    // Each move is an event of its own if the previous one has been published.
    await eventually('both are full', () => {
      const { a = [], b = [] } = movesOf(events());
      return a.length === 2 * round + 1 && b.length === 2 * round + 1;
    });
    home!.actors.ask(box('a'), { type: 'take' });
    other!.actors.ask(box('b'), { type: 'take' });
    await eventually('both are empty', () => {
      const { a = [], b = [] } = movesOf(events());
      return a.length === 2 * round + 2 && b.length === 2 * round + 2;
    });
  }
  other!.actors.ask(box('b'), { type: 'burn' });
  await eventually('it has left', () => movesOf(events()).b?.at(-1) === 'left ended');
  const inOrder = toEach(5).flatMap(() => ['full', 'empty']);
  const { a, b } = movesOf(events());
  assert.deepEqual(a, inOrder);
  assert.deepEqual(b?.slice(0, inOrder.length), inOrder);
});

test('the snapshot and the counts contain the actors of all workers', async (t) => {
  const [home, other, third] = await startWorkers(t, { size: 3 });
  home!.actors.spawn(box('a'), { id: 'a' });
  other!.actors.spawn(box('b'), { id: 'b' });
  const overview = await home!.follow({ moves: false });
  const counts = () =>
    overview.events().flatMap((event) => ('counts' in event.data ? [event.data.counts] : []));
  assert.deepEqual(counts(), [[{ kind: 'box', state: 'empty', count: 2 }]]);
  third!.actors.spawn(box('c'), { id: 'c' });
  third!.actors.ask(box('c'), put('a hat'));
  await eventually('it is counted', () => counts().at(-1)?.length === 2);
  assert.deepEqual(counts().at(-1), [
    { kind: 'box', state: 'empty', count: 2 },
    { kind: 'box', state: 'full', count: 1 },
  ]);
  assert.throws(() => third!.actors.ask(box('c'), put('another hat')));
  await eventually('the refusal is told', () =>
    overview.events().some(({ type }) => type === 'actor.refused'),
  );
  assert.deepEqual(
    overview.events().filter(({ type }) => type === 'actor.moved'),
    [],
    'an overview gets no moves',
  );
});

test('other workers note no changes of actors while nobody follows', async (t) => {
  const [home, other] = await startWorkers(t);
  assert.equal(other!.runtime.watch.isWatched, false);
  const { subscription } = await home!.follow();
  assert.equal(other!.runtime.watch.isWatched, true);
  subscription.close();
  home!.actors.spawn(box('a'), { id: 'a' });
  other!.cluster.die();
  await eventually('the streams of the home have ended', () => !home!.runtime.watch.isWatched);
  other!.cluster.start();
  const again = await home!.follow();
  again.subscription.close();
  home!.cluster.die();
  assert.equal(other!.runtime.watch.isWatched, false, 'the worker that followed has ended');
});

test('a worker that has ended gets no reports, even if its question is read later', async (t) => {
  const [home, other] = await startWorkers(t);
  const reading = other!.cluster.holdAnswer('follow-actors');
  await home!.follow();
  home!.cluster.die();
  reading.answer();
  await nextTurn();
  assert.equal(other!.runtime.watch.isWatched, false);
});

test('an event of another worker is published once that worker has stored the change on disk', async (t) => {
  let commit = () => {};
  const committed = new Promise<void>((resolve) => {
    commit = resolve;
  });
  const durable = (worker: number) => (worker === HOME ? undefined : isCommitting ? committed : undefined);
  let isCommitting = false;
  const [home, other] = await startWorkers(t, { durable });
  const { events } = await home!.follow();
  isCommitting = true;
  other!.actors.spawn(box('b'), { id: 'b' });
  home!.actors.spawn(box('a'), { id: 'a' });
  await eventually('the other one is told', () => movesOf(events()).a);
  assert.equal(movesOf(events()).b, undefined);
  commit();
  await eventually('it is told', () => movesOf(events()).b);
});

test('when a worker dies, subscribers get an event that asks them to read the list again, and a stream cannot be resumed from that event', async (t) => {
  const [home, other] = await startWorkers(t);
  home!.actors.spawn(box('a'), { id: 'a' });
  other!.actors.spawn(box('b'), { id: 'b' });
  const { sink, events } = await home!.follow();
  other!.cluster.die();
  await eventually('the stream has ended', () => sink.ended);
  assert.equal(events().at(-1)?.type, 'actors.resync-required');
  const lastEventId = parseFrames(sink.text).at(-1)!.id;
  const again = await home!.follow({ lastEventId });
  const [snapshot] = parseFrames(again.sink.text);
  assert.ok(!('resumed' in snapshot!.event), 'what the dead worker had not reported cannot be told');
  assert.deepEqual((snapshot!.event as unknown as ActorStreamEnvelope).data, {
    counts: [{ kind: 'box', state: 'empty', count: 1 }],
  });
});

test('a worker that starts while there are followers reports its changes from its start on', async (t) => {
  const [home, other] = await startWorkers(t);
  other!.cluster.die();
  const { sink, events } = await home!.follow();
  other!.cluster.start();
  await eventually('it reports', () => other!.runtime.watch.isWatched);
  other!.actors.spawn(box('b'), { id: 'b' });
  await eventually('it is told', () => movesOf(events()).b);
  assert.equal(sink.ended, false);
});

test('a worker that had actors of the workspace before the stream began makes followers read the list again', async (t) => {
  const [home, other] = await startWorkers(t);
  other!.cluster.die();
  const { sink, events } = await home!.follow();
  other!.actors.spawn(box('b'), { id: 'b' });
  other!.cluster.start();
  await eventually('the stream has ended', () => sink.ended);
  assert.equal(events().at(-1)?.type, 'actors.resync-required');
});

test('when a report would have too many events, the lists are read again', async (t) => {
  const [home, other] = await startWorkers(t);
  const { sink, events } = await home!.follow();
  for (const n of toEach(BURST)) other!.actors.spawn(box(`b${n}`), { id: `b${n}` });
  await eventually('the stream has ended', () => sink.ended);
  assert.equal(events().at(-1)?.type, 'actors.resync-required');
  assert.deepEqual(movesOf(events()), {});
});

test('when an actor moves to another worker, its leaving is published before its events there', async (t) => {
  const [home, from, to] = await startWorkers(t, { size: 3 });
  const { events } = await home!.follow();
  from!.actors.spawn(box('b'), { id: 'b' });
  await eventually('it is told', () => movesOf(events()).b);
  // The box's worker has just sent a report, so the next report would wait.
  from!.runtime.leaveTo(() => true);
  from!.actorReporter.leaveTo();
  to!.actors.spawn(box('b'), { id: 'b' });
  await eventually('it has come back', () => movesOf(events()).b?.length === 3);
  assert.deepEqual(movesOf(events()).b, ['empty', 'left stored', 'empty']);
});
