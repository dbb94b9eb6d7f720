/** When a subscriber that lags is cut off, and when it makes the producer wait. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { RecordingSink, snapshot, text } from './recording-sink.ts';
import { commit, delivered, rule, subscribe } from './stream-rules.ts';

/**
 * Stops timers and the clock of `performance.now()`. Returns the clock, so that the test can set
 * it.
 */
function stopClock(t: TestContext): { nowMs: number } {
  const clock = { nowMs: 0 };
  t.mock.timers.enable({ apis: ['setTimeout'] });
  t.mock.method(performance, 'now', () => clock.nowMs);
  return clock;
}

rule('a stalled subscriber is cut off at the limit and the others are not disturbed', async (open, t) => {
  const clock = stopClock(t);
  const stream = open(50_000);
  const stalled = subscribe(stream);
  const healthy = subscribe(stream);
  stalled.sink.open = false;
  stream.publish(text('first'));
  await delivered();
  for (let i = 0; i < 80; i++) {
    clock.nowMs += 25;
    stream.publish(text(''));
    await delivered();
  }
  assert.equal(stalled.sink.ended, false);
  for (let i = 0; i < 8; i++) {
    stream.publish(text('x'.repeat(6000)));
    await delivered();
  }
  assert.equal(stalled.sink.ended, true);
  assert.deepEqual(stalled.sink.story, [
    'session.snapshot',
    'session.replayed',
    'first',
    'session.resync-required slow_subscriber',
  ]);
  assert.equal(healthy.sink.story.length, 2 + 1 + 80 + 8);
  assert.equal(stream.subscriberCount, 1);
});

rule('a moving subscriber that lags pauses the producer and loses nothing', async (open, t) => {
  const clock = stopClock(t);
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
      clock.nowMs += 50;
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
  const clock = stopClock(t);
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
  for (let i = 0; i < 80; i++) {
    clock.nowMs += 25;
    t.mock.timers.tick(25);
  }
  assert.deepEqual(told, [true, false]);
  assert.equal(sink.ended, false);
});

rule('time in which the server stood still makes no subscriber look stalled', async (open, t) => {
  const clock = stopClock(t);
  const stream = open(10_000);
  const { sink, subscription } = subscribe(stream);
  sink.open = false;
  for (let i = 0; i < 3; i++) {
    clock.nowMs += 5000; // text printed meanwhile comes before the connection is seen to be writable
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

rule('a replay far above the limit does not count as lag', async (open) => {
  const stream = open(1000);
  const state = [snapshot, ...Array.from({ length: 100 }, () => text('x'.repeat(10_000)))];
  const sink = new RecordingSink();
  sink.open = false;
  const subscription = stream.subscribe(sink, { replay: () => state });
  const writesAtFirst = sink.writes;
  while (sink.events.at(-1)?.type !== 'session.replayed') subscription.writable();
  assert.deepEqual([writesAtFirst, sink.events.length, sink.ended], [1, 102, false]);
});
