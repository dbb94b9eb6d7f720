/** Which work gets the next slice of the event loop. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { inSlices } from '#src/base/async/slices.ts';

/** Work that needs so many slices. */
function* work(slices: number): Generator<undefined, void> {
  for (let i = 0; i < slices; i++) {
    for (const until = performance.now() + 5; performance.now() < until; );
    yield;
  }
}

test('the work of one workspace waits for one slice of another, and not for all its work', async () => {
  const ended: string[] = [];
  const begin = (name: string, slices: number, workspaceId?: string) =>
    inSlices(work(slices), workspaceId).then(() => ended.push(name));
  const busy = Array.from({ length: 5 }, (_, i) => begin(`busy ${i}`, 1, 'busy'));
  await Promise.all([...busy, begin('quiet', 1, 'quiet'), begin('of nobody', 1)]);
  assert.deepEqual(ended, ['quiet', 'of nobody', 'busy 0', 'busy 1', 'busy 2', 'busy 3', 'busy 4']);
});

test('the work of one workspace has its slices in turns', async () => {
  const ended: string[] = [];
  const begin = (name: string, slices: number) => inSlices(work(slices), 'busy').then(() => ended.push(name));
  await Promise.all([begin('long', 3), begin('short', 1)]);
  assert.deepEqual(ended, ['short', 'long']);
});
