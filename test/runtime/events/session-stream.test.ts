/** The order in which subscribers get published events, the wait for their commit, and the end. */
import assert from 'node:assert/strict';
import { setImmediate as turnOver } from 'node:timers/promises';
import type { Envelope } from '#src/contract/wire/events.ts';
import { closed, snapshot, text } from './recording-sink.ts';
import { commit, delivered, rule, subscribe } from './stream-rules.ts';

rule('a subscriber gets the state, the end of the replay, and then live events', async (open) => {
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

rule('all events of one turn are one write for each subscriber', async (open) => {
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

rule('events of a turn that commits are written only once its commit has begun', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  const first = commit();
  const storyAtCommit = turnOver().then(() => sink.story.slice(2));
  stream.publish(text('1'));
  stream.publish(text('2'), first.promise);
  assert.deepEqual(await storyAtCommit, []);
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['1']);
});

rule('an event whose commit fails is dropped, and later events continue', async (open) => {
  const stream = open();
  const { sink } = subscribe(stream);
  const failing = commit();
  stream.publish(text('lost'), failing.promise);
  stream.publish(text('kept'));
  failing.fail(new Error('disk'));
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['kept']);
});

rule('a snapshot taken while events are held is sent after these events and replaces them', async (open) => {
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

rule(
  'nothing is written to a subscriber that has left, and the leaving of the last subscriber is reported',
  async (open) => {
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
  },
);

rule('a subscriber that leaves before its held snapshot is sent gets nothing', async (open) => {
  const stream = open();
  const held = commit();
  stream.publish(text('held'), held.promise);
  const { sink, subscription } = subscribe(stream);
  subscription.close();
  held.settle();
  await delivered();
  assert.equal(sink.text, '');
});
