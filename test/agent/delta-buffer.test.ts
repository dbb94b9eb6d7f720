import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { DeltaBuffer } from '#src/agent/delta-buffer.ts';

function told() {
  const events: [string, string][] = [];
  return { events, buffer: new DeltaBuffer((kind, text) => events.push([kind, text])) };
}

test('deltas of one turn of the event loop are one event', async () => {
  const { events, buffer } = told();
  for (const piece of ['Let ', 'me ', 'see.']) buffer.add('text-delta', piece);
  assert.deepEqual(events, []);
  await turn();
  buffer.add('text-delta', ' Yes.');
  await turn();
  await turn();
  assert.deepEqual(events, [
    ['text-delta', 'Let me see.'],
    ['text-delta', ' Yes.'],
  ]);
});

test('reasoning and text are separate deltas, in their order', async () => {
  const { events, buffer } = told();
  buffer.add('reasoning-delta', 'Hm.');
  buffer.add('text-delta', 'No.');
  await turn();
  assert.deepEqual(events, [
    ['reasoning-delta', 'Hm.'],
    ['text-delta', 'No.'],
  ]);
});

test('pending text is published before other events, and dropped when the answer is abandoned', async () => {
  const { events, buffer } = told();
  buffer.add('text-delta', 'first');
  buffer.flush();
  assert.deepEqual(events, [['text-delta', 'first']]);
  buffer.add('text-delta', 'given up');
  buffer.drop();
  await turn();
  assert.equal(events.length, 1);
});
