import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KeptStreams } from '#src/runtime/sessions/kept-streams.ts';

test('the streams that were kept first are dropped when all of them take too many bytes', () => {
  const dropped: string[] = [];
  const kept = new KeptStreams((key) => dropped.push(key), 100_000);
  for (const key of ['a', 'b', 'c']) kept.add(key, 30_000); // each takes some bytes in addition to its events
  assert.deepEqual(dropped, ['a']);
  kept.add('b', 30_000); // is now the newest
  kept.add('d', 30_000);
  assert.deepEqual(dropped, ['a', 'c']);
  kept.delete('b');
  kept.delete('d');
  for (const key of ['e', 'f']) kept.add(key, 30_000);
  assert.deepEqual(dropped, ['a', 'c']);
  kept.add('g', 200_000);
  assert.deepEqual(dropped, ['a', 'c', 'e', 'f', 'g']);
});
