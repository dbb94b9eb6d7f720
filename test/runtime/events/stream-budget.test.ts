import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { StreamBudget } from '#src/runtime/events/stream-budget.ts';
import { closed, RecordingSink, snapshot, text } from './recording-sink.ts';

const KIB = 1024;
const delivered = () => Promise.resolve().then(() => {});

function streamOf(budget: StreamBudget) {
  return new SessionStream({ sessionId: 's', limitBytes: 1024 * KIB, budget });
}

function subscribe(stream: SessionStream, open = true) {
  const sink = new RecordingSink();
  const subscription = stream.subscribe(sink, { replay: () => [snapshot] });
  sink.open = open;
  return { sink, subscription };
}

/** Resolves once the event was sent: a large event is encoded in slices. */
async function publish(stream: SessionStream, bytes: number): Promise<void> {
  const { sink, subscription } = subscribe(stream);
  stream.publish(text('x'.repeat(bytes)));
  await delivered();
  for (let turns = 0; sink.text.length < bytes; turns++) {
    assert.ok(turns < 1000, 'the event did not come');
    await new Promise(setImmediate);
  }
  subscription.close();
}

test('a stream without lagging subscribers charges nothing', async () => {
  const budget = new StreamBudget(10 * KIB);
  const stream = streamOf(budget);
  const { sink } = subscribe(stream);
  for (let n = 0; n < 10; n++) await publish(stream, 8 * KIB);
  assert.equal(budget.chargedBytes, 0);
  assert.equal(sink.ended, false);
});

test('beyond the budget, the stream that lags most is cut off first, and the others continue', async () => {
  const budget = new StreamBudget(64 * KIB);
  const [one, other] = [streamOf(budget), streamOf(budget)];
  const far = subscribe(one, false);
  const reader = subscribe(one);
  await publish(one, 30 * KIB);
  const near = subscribe(other, false);
  await publish(other, 20 * KIB);
  assert.deepEqual([far.sink.ended, near.sink.ended], [false, false]);
  await publish(other, 10 * KIB);
  await publish(one, 20 * KIB);
  assert.deepEqual([far.sink.ended, near.sink.ended, reader.sink.ended], [true, false, false]);
  assert.equal(far.sink.story.at(-1), 'session.resync-required slow_subscriber');
  assert.ok(budget.chargedBytes <= 64 * KIB);
  near.sink.open = true;
  near.subscription.writable();
  assert.equal(budget.chargedBytes, 0);
  assert.deepEqual(near.sink.story.slice(2), ['text', 'text']);
});

test('the charge of a subscriber is returned when it leaves and when its stream ends', async () => {
  const budget = new StreamBudget(1024 * KIB);
  const stream = streamOf(budget);
  const leaving = subscribe(stream, false);
  const staying = subscribe(stream, false);
  await publish(stream, 30 * KIB);
  await publish(stream, 30 * KIB);
  const both = budget.chargedBytes;
  assert.ok(both > 90 * KIB, 'two unsent pieces, and the frame that both lack, once');
  leaving.subscription.close();
  assert.ok(budget.chargedBytes < both && budget.chargedBytes > 60 * KIB);
  stream.end(closed);
  staying.sink.open = true;
  await delivered();
  staying.subscription.writable();
  assert.equal(budget.chargedBytes, 0);
  assert.equal(staying.sink.ended, true);
});

test('many subscribers that read nothing of a large frame stay within the budget', async () => {
  const budget = new StreamBudget(1024 * KIB);
  const stream = streamOf(budget);
  const reader = subscribe(stream);
  const crowd = Array.from({ length: 200 }, () => subscribe(stream, false));
  await publish(stream, 900 * KIB);
  assert.ok(budget.chargedBytes <= 1024 * KIB, `${budget.chargedBytes}`);
  const cut = crowd.filter(({ sink }) => sink.ended);
  assert.ok(
    cut.length > 150 &&
      cut.every(({ sink }) => sink.story.at(-1) === 'session.resync-required slow_subscriber'),
  );
  assert.ok(
    crowd.every(({ sink }) => (sink.lengthAtCutOff ?? sink.text.length) < 66 * KIB),
    'none was handed more than a piece',
  );
  assert.equal(reader.sink.story.at(-1), 'text');
  assert.equal(reader.sink.ended, false);
});

test('the rest of a large frame is sent when its connection accepts bytes again', async () => {
  const stream = streamOf(new StreamBudget(10 * 1024 * KIB));
  const { sink, subscription } = subscribe(stream, false);
  await publish(stream, 300 * KIB);
  stream.publish(text('behind it'));
  await delivered();
  for (let n = 0; n < 8; n++) subscription.writable();
  assert.deepEqual(sink.story.slice(2), ['text', 'behind it']);
});

test('the state sent to a subscriber counts, because it is in memory for that subscriber alone', async () => {
  const budget = new StreamBudget(1024 * KIB);
  const stream = streamOf(budget);
  const sinks = Array.from({ length: 10 }, () => {
    const sink = new RecordingSink();
    sink.open = false;
    stream.subscribe(sink, { replay: () => [text('x'.repeat(200 * KIB))] });
    return sink;
  });
  assert.ok(budget.chargedBytes <= 1024 * KIB && budget.chargedBytes > 300 * KIB);
  assert.ok(sinks.some(({ ended }) => ended) && sinks.some(({ ended }) => !ended));
});

test('the events of a first state count towards the memory of streams until its subscriber has taken them', async () => {
  const budget = new StreamBudget(1024 * KIB);
  const stream = streamOf(budget);
  const state = Array.from({ length: 1000 }, () => text('x'.repeat(100)));
  const subscribers = Array.from({ length: 10 }, () => {
    const sink = new RecordingSink();
    sink.open = false;
    return { sink, subscription: stream.subscribe(sink, { replay: () => state }) };
  });
  const open = subscribers.filter(({ sink }) => !sink.ended);
  assert.ok(open.length > 0 && open.length <= 3, `${open.length} of ten fit, with 400 KiB each`);
  for (const { sink, subscription } of open) {
    sink.open = true;
    subscription.writable();
  }
  assert.deepEqual(
    open.map(({ sink }) => sink.story.length),
    open.map(() => state.length + 1),
  );
  assert.equal(budget.chargedBytes, 0);
});
