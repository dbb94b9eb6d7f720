/**
 * A stream that serves the subscribers of another process. The rules in `stream-rules.ts` check
 * that they are served like local subscribers.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Subscription } from '#src/runtime/events/event-sink.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { SeededRandom } from '#test/support/random.ts';
import { OtherProcess } from './other-process.ts';
import { closed, RecordingSink, snapshot, text } from './recording-sink.ts';

const LIMIT_BYTES = 10_000;

/** Resolves once everything published in this turn was sent. */
const delivered = () => Promise.resolve().then(() => {});

function start() {
  const stream = new SessionStream({ sessionId: 's', limitBytes: LIMIT_BYTES });
  const other = new OtherProcess(LIMIT_BYTES);
  const subscribe = ({ lastEventId = '', observes = false } = {}) => {
    const sink = new RecordingSink();
    const options = { lastEventId, observes, replay: () => [snapshot] };
    return { sink, subscription: other.subscribe(stream, sink, options) };
  };
  return { stream, other, subscribe };
}

const live = (sink: RecordingSink) => sink.story.slice(2);

test('a chunk is sent once to another process, however many followers it has there', async () => {
  const { stream, other, subscribe } = start();
  const sinks = [subscribe(), subscribe(), subscribe()].map(({ sink }) => sink);
  stream.publish(text('a'));
  await delivered();
  stream.publish(text('b'));
  await delivered();
  assert.deepEqual(sinks.map(live), [
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
  ]);
  assert.deepEqual(
    other.feeds.map(({ chunks }) => chunks),
    [2],
  );
});

test('a subscriber that joins a lagging feed gets each event once', async () => {
  const { stream, other, subscribe } = start();
  const early = subscribe().sink;
  other.feeds[0]!.isHeld = true;
  stream.publish(text('a'));
  await delivered();
  stream.publish(text('b'));
  await delivered();
  const late = subscribe().sink; // its state has both
  stream.publish(text('c'));
  await delivered();
  assert.deepEqual([live(early), live(late)], [[], []]);
  other.feeds[0]!.goOn();
  assert.deepEqual([live(early), live(late)], [['a', 'b', 'c'], ['c']]);
});

test('a feed whose process reads nothing is cut off, and its subscribers come back for the missed events', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const { stream, other, subscribe } = start();
  const sinks = [subscribe(), subscribe()].map(({ sink }) => sink);
  const here = new RecordingSink();
  stream.subscribe(here, { replay: () => [snapshot] });
  stream.publish(text('a'));
  await delivered();
  other.feeds[0]!.isHeld = true;
  let published = 1;
  const isCutOffWithin = async (chunks: number, length: number) => {
    for (let i = 0; i < chunks && other.cutOffs.length === 0; i++, published++) {
      nowMs += 25;
      stream.publish(text('x'.repeat(length)));
      await delivered();
    }
    return other.cutOffs.length > 0;
  };
  assert.equal(await isCutOffWithin(20, 1000), false, 'a busy process has time');
  assert.equal(await isCutOffWithin(80, 10), true);
  for (const sink of sinks) {
    assert.deepEqual([live(sink), sink.ended], [['a', 'session.resync-required slow_subscriber'], true]);
  }
  assert.deepEqual(other.cutOffs, ['slow_subscriber', 'slow_subscriber']);
  assert.deepEqual([live(here).length, here.ended, stream.subscriberCount], [published, false, 1]);
  stream.publish(text('b'));
  await delivered();
  const again = subscribe({ lastEventId: here.frames.at(-2)!.id }).sink;
  assert.deepEqual(again.story, ['session.snapshot', 'b', 'session.replayed']);
  assert.equal(other.feeds.length, 2);
});

test('a chunk larger than any limit waits until its process reads', async () => {
  const { stream, other, subscribe } = start();
  const { sink } = subscribe();
  const paused: boolean[] = [];
  stream.onPressure((isPaused) => paused.push(isPaused));
  const large = 'x'.repeat(LIMIT_BYTES * 5);
  stream.publish(text('a'));
  await delivered();
  other.feeds[0]!.isHeld = true;
  stream.publish(text('b'));
  await delivered();
  stream.publish(text(large));
  await delivered();
  assert.deepEqual([other.cutOffs, paused], [[], [true]]);
  other.feeds[0]!.goOn();
  assert.deepEqual(
    [live(sink), paused],
    [
      ['a', 'b', 'text'],
      [true, false],
    ],
  );
});

test('a feed is closed when its last subscriber has left, and not before', async () => {
  const { stream, other, subscribe } = start();
  const told: string[] = [];
  stream.onUnused(() => told.push('unused'));
  stream.onEmpty(() => told.push('empty'));
  const [one, two] = [subscribe(), subscribe()];
  one.subscription.close();
  one.subscription.close();
  assert.deepEqual([told, stream.subscriberCount, other.feeds[0]!.isClosed], [[], 1, false]);
  two.subscription.close();
  assert.deepEqual([told, stream.subscriberCount, other.feeds[0]!.isClosed], [['unused', 'empty'], 0, true]);
  assert.equal(other.feeds[0]!.mirror.subscriberCount, 0);
  const { sink } = subscribe();
  stream.publish(text('again'));
  await delivered();
  assert.deepEqual([live(sink), other.feeds.length], [['again'], 2]);
});

test('observers have a feed of their own that uses no budget and pauses no producer', async () => {
  const { stream, other, subscribe } = start();
  const told: boolean[] = [];
  stream.onPressure((isPressed) => told.push(isPressed));
  const { sink } = subscribe({ observes: true });
  assert.deepEqual([stream.userCount, stream.subscriberCount], [0, 1]);
  const user = subscribe();
  assert.deepEqual([stream.userCount, other.feeds.length], [1, 2]);
  sink.open = false;
  for (let i = 0; i < 8; i++) {
    stream.publish(text('x'.repeat(1000)));
    await delivered();
  }
  assert.deepEqual(told, []);
  assert.equal(live(user.sink).length, 8);
});

test('the end of a stream reaches a process that reads the last chunks late', async () => {
  const { stream, other, subscribe } = start();
  const { sink } = subscribe();
  const [feed] = other.feeds;
  stream.publish(text('a'));
  await delivered();
  feed!.isHeld = true;
  stream.publish(text('b'));
  await delivered();
  stream.end(closed);
  await delivered();
  assert.deepEqual([live(sink), sink.ended], [['a'], false]);
  feed!.goOn();
  assert.deepEqual([live(sink), sink.ended], [['a', 'b', 'session.closed closed'], true]);
  assert.equal(stream.subscriberCount, 0);
});

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  test(`subscribers that join and leave at any time see the same events in both workers (seed ${seed})`, async () => {
    const random = new SeededRandom(seed);
    const stream = new SessionStream({ sessionId: 's', limitBytes: 1024 * 1024 });
    const others = [new OtherProcess(), new OtherProcess()];
    const pairs: { here: Client; there: Client }[] = [];
    let known = '';
    for (let step = 0; step < 400; step++) {
      const what = random.below(10);
      if (what < 4) {
        const after = random.below(4) === 0 ? Promise.resolve() : undefined;
        for (let i = random.below(3); i >= 0; i--) stream.publish(text(`${step}.${i}`), after);
      } else if (what < 6) {
        const other = random.pick(others);
        const lastEventId = random.below(2) === 0 ? known : '';
        const options = { lastEventId, replay: () => [snapshot, text(`state ${step}`)] };
        const [one, two] = [new RecordingSink(), new RecordingSink()];
        pairs.push({
          here: { sink: one, subscription: stream.subscribe(one, options) },
          there: { sink: two, subscription: other.subscribe(stream, two, options) },
        });
      } else if (what === 6 && pairs.length > 0) {
        await delivered();
        for (const feed of others.flatMap(({ feeds }) => feeds)) feed.goOn();
        const [{ here, there }] = pairs.splice(random.below(pairs.length), 1) as [(typeof pairs)[number]];
        here.subscription.close();
        there.subscription.close();
        assert.deepEqual(seen(there), seen(here));
      } else if (what === 7) for (const { feeds } of others) for (const feed of feeds) feed.isHeld = true;
      else if (what === 8) for (const { feeds } of others) for (const feed of feeds) feed.goOn();
      else await delivered();
      known = pairs.at(-1)?.here.sink.frames.at(-1)?.id ?? known;
    }
    stream.end(closed);
    for (let i = 0; i < 20; i++) await delivered();
    for (const feed of others.flatMap(({ feeds }) => feeds)) feed.goOn();
    assert.ok(pairs.length > 0);
    for (const { here, there } of pairs) {
      assert.deepEqual([seen(there), there.sink.ended], [seen(here), here.sink.ended]);
      there.subscription.close();
    }
    assert.equal(stream.subscriberCount, 0);
  });
}

interface Client {
  readonly sink: RecordingSink;
  readonly subscription: Subscription;
}

function seen({ sink }: Client) {
  return sink.frames.map(({ id, event }) => ({ id, event }));
}
