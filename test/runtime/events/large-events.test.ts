import assert from 'node:assert/strict';
import test from 'node:test';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { StreamBudget } from '#src/runtime/events/stream-budget.ts';
import { RecordingSink, snapshot, text } from './recording-sink.ts';
import { delivered } from './stream-rules.ts';

const MIB = 2 ** 20;
const LARGE = text('x'.repeat(5 * MIB));
const nextTurn = () => new Promise(setImmediate);

async function until(isTrue: () => boolean): Promise<void> {
  for (let turns = 0; !isTrue(); turns++) {
    assert.ok(turns < 1000, 'it did not come');
    await nextTurn();
  }
}

function subscribe(stream: SessionStream, state = [snapshot], isOpen = true) {
  const sink = new RecordingSink();
  sink.open = isOpen;
  return { sink, subscription: stream.subscribe(sink, { replay: () => state }) };
}

test('a large event is encoded in later turns, and later events follow it', async () => {
  const stream = new SessionStream({ sessionId: 's' });
  const { sink } = subscribe(stream);
  stream.publish(text('before'));
  stream.publish(LARGE);
  stream.publish(text('after'));
  await delivered();
  assert.deepEqual(sink.story.slice(2), ['before']);
  await until(() => sink.text.endsWith('\n\n') && sink.text.includes('after'));
  assert.deepEqual(sink.events.slice(2), [text('before'), LARGE, text('after')]);
});

test('a large event whose commit fails is never seen', async () => {
  const stream = new SessionStream({ sessionId: 's' });
  const { sink } = subscribe(stream);
  stream.publish(LARGE, Promise.reject(new Error('the commit failed')));
  stream.publish(text('after'));
  await until(() => sink.text.includes('after'));
  assert.deepEqual(sink.story.slice(2), ['after']);
});

test('a subscriber gets at most a megabyte in one turn, and live events follow the state', async () => {
  const stream = new SessionStream({ sessionId: 's' });
  const { sink } = subscribe(stream, [snapshot, LARGE]);
  let before = sink.text.length;
  assert.ok(before > MIB / 2);
  stream.publish(text('live'));
  await until(() => {
    const given = sink.text.length - before;
    assert.ok(given <= 1.1 * MIB, `${given} in one turn`);
    before = sink.text.length;
    return sink.text.includes('live');
  });
  assert.deepEqual(sink.events.at(1), LARGE);
  assert.deepEqual(sink.story.slice(2), ['session.replayed', 'live']);
});

test('a large state takes the memory of one piece per subscriber, because the next piece is encoded when the last one is taken', async () => {
  const budget = new StreamBudget(100 * MIB);
  const stream = new SessionStream({ sessionId: 's', budget });
  const { sink, subscription } = subscribe(stream, [snapshot, LARGE], false);
  assert.ok(sink.text.length < 0.1 * MIB);
  assert.ok(budget.chargedBytes < 0.1 * MIB);
  for (let n = 0; n < 10; n++) subscription.writable();
  const written = Buffer.byteLength(sink.text);
  assert.ok(written > 0.2 * MIB && written < MIB);
  sink.text += Buffer.from(subscription.probe()).toString();
  assert.equal(sink.text.at(-1), 'x', 'within a frame its next byte is the probe');
  sink.open = true;
  subscription.writable();
  await until(() => sink.text.includes('session.replayed'));
  assert.deepEqual(sink.events.at(1), LARGE);
});

test('a subscriber that is cut off within a large state still gets the rest of that frame', () => {
  const stream = new SessionStream({ sessionId: 's' });
  const { sink, subscription } = subscribe(stream, [snapshot, LARGE, text('never sent')], false);
  subscription.writable();
  stream.resync('server_stopping');
  assert.equal(sink.ended, true);
  assert.deepEqual(sink.story, ['session.snapshot', 'text', 'session.resync-required server_stopping']);
});
