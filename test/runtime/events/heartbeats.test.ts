import assert from 'node:assert/strict';
import test from 'node:test';
import { Heartbeats } from '#src/runtime/events/heartbeats.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { RecordingSink, snapshot } from './recording-sink.ts';

test('every subscriber except a stalled one gets one comment in each period', (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  using heartbeats = new Heartbeats(8000);
  const stream = new SessionStream({ sessionId: 's', heartbeats });
  const sinks = Array.from({ length: 20 }, () => new RecordingSink());
  sinks[7]!.open = false;
  const subscriptions = sinks.map((sink) => stream.subscribe(sink, { replay: () => [snapshot] }));
  const beats = () => sinks.map((sink) => (sink.text.match(/^:$/gm) ?? []).length);
  t.mock.timers.tick(8000);
  const once = sinks.map((_, i) => (i === 7 ? 0 : 1));
  assert.deepEqual(beats(), once);
  t.mock.timers.tick(16000);
  assert.deepEqual(
    beats(),
    once.map((count) => count * 3),
  );
  for (const subscription of subscriptions) subscription.close();
  t.mock.timers.tick(80000);
  assert.deepEqual(
    beats(),
    once.map((count) => count * 3),
  );
});
