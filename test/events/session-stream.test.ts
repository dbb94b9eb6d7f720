import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { SessionStream } from '#src/events/session-stream.ts';
import type { Envelope } from '#src/wire/events.ts';
import { StreamFollowedElsewhere } from './other-process.ts';
import { closed, RecordingSink, snapshot, text } from './recording-sink.ts';

type Open = (limitBytes?: number) => SessionStream;

/** Declares a rule for subscribers that are clients of this process, and for those that are clients of another one. */
function rule(name: string, check: (open: Open, t: TestContext) => void | Promise<void>): void {
  const optionsOf = (limitBytes?: number) => ({
    sessionId: 's',
    ...(limitBytes === undefined ? {} : { limitBytes }),
  });
  test(name, (t) => check((limitBytes) => new SessionStream(optionsOf(limitBytes)), t));
  test(`${name} (in another process)`, (t) =>
    check((limitBytes) => new StreamFollowedElsewhere(optionsOf(limitBytes)), t));
}

/** Everything that was published in this turn is out. */
const delivered = () => Promise.resolve().then(() => {});

function subscribe(stream: SessionStream, lastEventId = '', state: readonly Envelope[] = [snapshot]) {
  const sink = new RecordingSink();
  return { sink, subscription: stream.subscribe(sink, { lastEventId, replay: () => state }) };
}

function commit() {
  let settle: () => void = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  return { promise, settle, fail };
}

rule('a subscriber gets the state, the end of the replay, then what is live', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream, '', [snapshot, text('before')]);
  stream.publish(text('live'));
  await delivered();
  assert.deepEqual(sink.story, ['session.snapshot', 'before', 'session.replayed', 'live']);
});

rule('envelopes arrive as they were published', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  const event: Envelope = {
    type: 'run-status',
    sessionId: 's',
    runId: 'run_1',
    data: { runId: 'run_1', status: 'failed' },
  };
  stream.publish(event);
  await delivered();
  assert.deepEqual(sink.events, [snapshot, { type: 'session.replayed', sessionId: 's', data: {} }, event]);
});

rule('what is published in one turn is one write for each subscriber', async (open) => {
  const stream = open();
  const sinks = [subscribe(stream).sink, subscribe(stream).sink];
  const before = sinks.map((sink) => sink.writes);
  for (const words of ['a', 'b', 'c']) stream.publish(text(words));
  await delivered();
  assert.deepEqual(
    sinks.map((sink) => sink.writes),
    before.map((writes) => writes + 1),
  );
  assert.deepEqual(
    sinks.map((sink) => sink.story.slice(-3)),
    [
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ],
  );
});

rule('an event that waits for its commit holds itself and all behind it', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  const first = commit();
  const second = commit();
  stream.publish(text('1'));
  stream.publish(text('2'), first.promise);
  stream.publish(text('3'));
  stream.publish(text('4'), second.promise);
  stream.publish(text('5'));
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['1']);
  second.settle();
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['1']);
  first.settle();
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['1', '2', '3', '4', '5']);
});

rule('an event whose commit fails is dropped and those behind it go on', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  const failing = commit();
  stream.publish(text('lost'), failing.promise);
  stream.publish(text('kept'));
  failing.fail(new Error('disk'));
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['kept']);
});

rule('a snapshot taken while events are held is sent behind them and stands for them', async (open) => {
  const stream = open();
  const early = subscribe(stream).sink;
  const held = commit();
  stream.publish(text('in the snapshot'), held.promise);
  const { sink } = subscribe(stream, '', [snapshot, text('state')]);
  stream.publish(text('after'));
  await delivered();
  assert.deepEqual(sink.story, []);
  held.settle();
  await delivered();
  assert.deepEqual(sink.story, ['session.snapshot', 'state', 'session.replayed', 'after']);
  assert.deepEqual(early.story.slice(2), ['in the snapshot', 'after']);
});

rule('a subscriber that joins within a turn misses nothing of it and sees nothing twice', async (open) => {
  const stream = open();
  stream.publish(text('in the snapshot'));
  const { sink } = subscribe(stream);
  stream.publish(text('live'));
  await delivered();
  assert.deepEqual(sink.story, ['session.snapshot', 'session.replayed', 'live']);
});

/** The frames of a subscriber as words: what is marked as missed has a `?`, a resumed snapshot a `+`. */
const marked = (sink: RecordingSink) =>
  sink.frames.map(({ event: { resumed, ...event } }, i) => {
    const isMissed = 'missed' in event && event.missed === true;
    return `${sink.story[i]}${isMissed ? '?' : ''}${resumed === true ? '+' : ''}`;
  });

rule(
  'a subscriber that comes back gets the snapshot, exactly what it missed, the state, and what is live',
  async (open) => {
    const stream = open();
    const { sink, subscription } = subscribe(stream);
    for (const words of ['1', '2', '3', '4']) stream.publish(text(words));
    await delivered();
    stream.publish(text('5'));
    await delivered();
    subscription.close();
    const state = [snapshot, text('state')];
    const stories = sink.frames.slice(1).map(({ id }) => subscribe(stream, id, state).sink);
    stream.publish(text('6'));
    await delivered();
    const missed = ['1?', '2?', '3?', '4?', '5?'];
    assert.deepEqual(
      stories.map(marked),
      [0, 1, 2, 3, 4, 5].map((count) => [
        'session.snapshot+',
        ...missed.slice(count),
        'state',
        'session.replayed',
        '6',
      ]),
    );
  },
);

rule('a subscriber that is cut off while it catches up continues there, wherever it was', async (open) => {
  const stream = open();
  const first = subscribe(stream);
  for (const words of ['1', '2', '3']) stream.publish(text(words));
  await delivered();
  const { id } = first.sink.frames[2]!;
  const { frames } = subscribe(stream, id, [snapshot, text('a'), text('b')]).sink;
  const ids = frames.map((frame) => frame.id);
  assert.equal(new Set(ids).size, ids.length);
  const missedAfter = (lastEventId: string) =>
    marked(subscribe(stream, lastEventId).sink).filter((word) => word.endsWith('?'));
  assert.deepEqual(ids.map(missedAfter), [['2?', '3?'], ['3?'], [], [], [], []]);
  assert.ok(ids.every((one) => marked(subscribe(stream, one).sink)[0] === 'session.snapshot+'));
});

rule('what is held for its commit when a subscriber comes back counts as missed', async (open) => {
  const stream = open();
  const { id } = subscribe(stream).sink.frames[1]!;
  const held = commit();
  stream.publish(text('held'), held.promise);
  const { sink } = subscribe(stream, id);
  stream.publish(text('after'));
  held.settle();
  await delivered();
  assert.deepEqual(marked(sink), ['session.snapshot+', 'held?', 'session.replayed', 'after']);
});

rule('every event has the time of its publication, or the time that it brings', async (open, t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.UTC(2026, 0, 2) });
  const stream = open();
  const { sink } = subscribe(stream);
  t.mock.timers.tick(5);
  stream.publish(text('a'));
  stream.publish({ ...text('b'), time: '2025-01-01T00:00:00.000Z' });
  await delivered();
  assert.deepEqual(
    sink.frames.map(({ time }) => time),
    [
      '2026-01-02T00:00:00.000Z',
      '2026-01-02T00:00:00.000Z',
      '2026-01-02T00:00:00.005Z',
      '2025-01-01T00:00:00.000Z',
    ],
  );
});

rule('an id that is not known here asks for the state again', async (open) => {
  const earlier = open();
  const stream = open();
  const known = subscribe(stream).sink.frames;
  const foreign = subscribe(earlier).sink.frames;
  const { id } = known[1]!;
  const ids = [foreign[1]!.id, known[0]!.id, `${id}9`, 'x', '-', `${id}-1`, `${id}.0`, `${id}.1.1`, ` ${id}`];
  assert.deepEqual(
    ids.map((one) => marked(subscribe(stream, one).sink)),
    ids.map(() => ['session.snapshot', 'session.replayed']),
  );
});

rule('an id that has left the ring asks for the state again', async (open) => {
  const stream = open(1024);
  const { id } = subscribe(stream).sink.frames[1]!;
  for (let i = 0; i < 10; i++) {
    stream.publish(text('x'.repeat(200)));
    await delivered();
  }
  assert.deepEqual(subscribe(stream, id).sink.story, ['session.snapshot', 'session.replayed']);
});

rule('a stalled subscriber is cut off at the limit and the others are not disturbed', async (open, t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const stream = open(10_000);
  const stalled = subscribe(stream);
  const healthy = subscribe(stream);
  stalled.sink.open = false;
  stream.publish(text('first'));
  await delivered();
  for (let i = 0; i < 8; i++) {
    nowMs += 25;
    stream.publish(text('x'.repeat(1000)));
    await delivered();
  }
  assert.equal(stalled.sink.ended, false);
  for (let i = 0; i < 8; i++) {
    stream.publish(text('x'.repeat(1000)));
    await delivered();
  }
  assert.equal(stalled.sink.ended, true);
  assert.deepEqual(stalled.sink.story, [
    'session.snapshot',
    'session.replayed',
    'first',
    'session.resync-required slow_subscriber',
  ]);
  assert.equal(healthy.sink.story.length, 2 + 17);
  assert.equal(stream.subscriberCount, 1);
});

rule('the id of a resync asks for the state again', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  stream.publish(text('1'));
  await delivered();
  stream.resync('server_stopping');
  const last = sink.frames.at(-1)!;
  assert.deepEqual([sink.story.at(-1), sink.ended], ['session.resync-required server_stopping', true]);
  assert.deepEqual(subscribe(stream, last.id).sink.story, ['session.snapshot', 'session.replayed']);
});

rule('a moving subscriber that lags pauses the producer and loses nothing', async (open, t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const stream = open(10_000);
  const told: boolean[] = [];
  stream.onPressure((paused) => told.push(paused));
  const { sink, subscription } = subscribe(stream);
  sink.open = false;
  const words: string[] = [];
  for (let i = 0; i < 200; i++) {
    if (told.at(-1) !== true) {
      words.push(`w${i}`);
      stream.publish({ ...text(`w${i}`), runId: 'x'.repeat(2000) });
      await delivered();
    } else {
      nowMs += 50;
      sink.open = i % 3 === 0;
      subscription.writable();
    }
  }
  sink.open = true;
  subscription.writable();
  assert.deepEqual(sink.story.slice(2), words);
  assert.equal(told.at(-1), false);
  assert.deepEqual(told.slice(0, 4), [true, false, true, false]);
});

rule('a stalled subscriber does not hold the producer', async (open, t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const stream = open(10_000);
  const told: boolean[] = [];
  stream.onPressure((paused) => told.push(paused));
  const { sink } = subscribe(stream);
  sink.open = false;
  for (let i = 0; i < 9; i++) {
    stream.publish(text('x'.repeat(1000)));
    await delivered();
  }
  assert.deepEqual(told, [true]);
  for (let i = 0; i < 4; i++) {
    nowMs += 25;
    t.mock.timers.tick(25);
  }
  assert.deepEqual(told, [true, false]);
  assert.equal(sink.ended, false);
});

rule('time in which the server stood still makes no subscriber look stalled', async (open, t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  t.mock.method(performance, 'now', () => nowMs);
  const stream = open(10_000);
  const { sink, subscription } = subscribe(stream);
  sink.open = false;
  for (let i = 0; i < 3; i++) {
    nowMs += 5000; // what was printed meanwhile comes before the connection is seen to be writable
    for (let n = 0; n < 15; n++) stream.publish(text('x'.repeat(1000)));
    t.mock.timers.tick(5000);
    await delivered();
    subscription.writable();
  }
  assert.equal(sink.ended, false);
  sink.open = true;
  subscription.writable();
  assert.equal(sink.story.length, 2 + 45);
});

rule('events that are held for long pause the producer too', async (open) => {
  const stream = open(10_000);
  const told: boolean[] = [];
  stream.onPressure((paused) => told.push(paused));
  const held = commit();
  stream.publish(text('1'), held.promise);
  for (let i = 0; i < 9; i++) stream.publish(text('x'.repeat(1000)));
  assert.deepEqual(told, [true]);
  held.settle();
  await delivered();
  assert.deepEqual(told, [true, false]);
});

rule('a replay far above the limit is no lag', async (open) => {
  const stream = open(1000);
  const state = [snapshot, ...Array.from({ length: 100 }, () => text('x'.repeat(10_000)))];
  const sink = new RecordingSink();
  sink.open = false;
  const subscription = stream.subscribe(sink, { replay: () => state });
  const writesAtFirst = sink.writes;
  while (sink.events.at(-1)?.type !== 'session.replayed') subscription.writable();
  assert.deepEqual([writesAtFirst, sink.events.length, sink.ended], [1, 102, false]);
});

rule(
  'the end is told behind all that came before it, and late subscribers get the state and the end',
  async (open) => {
    const stream = open();
    const { sink } = subscribe(stream);
    const slow = subscribe(stream);
    slow.sink.open = false;
    stream.publish(text('last words'));
    const held = commit();
    stream.end(closed, held.promise);
    stream.publish(text('too late'));
    const between = subscribe(stream).sink;
    await delivered();
    assert.deepEqual([sink.ended, between.ended], [false, false]);
    held.settle();
    await delivered();
    const state = ['session.snapshot', 'session.replayed'];
    assert.deepEqual(sink.story, [...state, 'last words', 'session.closed closed']);
    assert.deepEqual(between.story, [...state, 'session.closed closed']);
    assert.deepEqual([sink.ended, between.ended, slow.sink.ended], [true, true, false]);
    slow.sink.open = true;
    slow.subscription.writable();
    assert.deepEqual([slow.sink.story, slow.sink.ended], [sink.story, true]);
    const late = subscribe(stream).sink;
    assert.deepEqual([late.story, late.ended], [[...state, 'session.closed closed'], true]);
    assert.equal(stream.subscriberCount, 0);
  },
);

rule('a subscriber that left is written to no more, and the last one to leave is noticed', async (open) => {
  const stream = open();
  let emptied = 0;
  stream.onEmpty(() => emptied++);
  const one = subscribe(stream);
  const two = subscribe(stream);
  one.subscription.close();
  one.subscription.close();
  assert.equal(emptied, 0);
  two.subscription.close();
  two.subscription.writable();
  stream.publish(text('nobody hears'));
  await delivered();
  assert.deepEqual(
    [emptied, stream.subscriberCount, one.sink.story.length, two.sink.story.length],
    [1, 0, 2, 2],
  );
});

rule('one that leaves before its held snapshot was sent gets nothing', async (open) => {
  const stream = open();
  const held = commit();
  stream.publish(text('held'), held.promise);
  const { sink, subscription } = subscribe(stream);
  subscription.close();
  held.settle();
  await delivered();
  assert.equal(sink.text, '');
});
