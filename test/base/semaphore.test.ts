import assert from 'node:assert/strict';
import test from 'node:test';
import { Semaphore } from '#src/base/async/semaphore.ts';

interface Piece {
  readonly name: string;
  readonly done: (error?: Error) => void;
}

/** Work that lasts until `end` is called. */
function workshop(semaphore: Semaphore) {
  const begun: Piece[] = [];
  const start = (name: string) =>
    semaphore.pass(
      () =>
        new Promise<string>((resolve, reject) => {
          begun.push({ name, done: (error) => (error ? reject(error) : resolve(name)) });
        }),
    );
  return { begun, start, names: () => begun.map(({ name }) => name) };
}

test('work runs in parallel up to the width, and then in the order of its arrival', async () => {
  const { begun, start, names } = workshop(new Semaphore(2, 10));
  const all = ['a', 'b', 'c', 'd'].map(start);
  assert.deepEqual(names(), ['a', 'b']);
  begun[1]!.done();
  assert.equal(await all[1], 'b');
  assert.deepEqual(names(), ['a', 'b', 'c']);
  begun[0]!.done();
  await all[0];
  begun[2]!.done();
  begun[3]!.done();
  assert.deepEqual(await Promise.all(all), ['a', 'b', 'c', 'd']);
});

test('a request is refused when too many others wait, and work that fails makes room', async () => {
  const { begun, start, names } = workshop(new Semaphore(1, 1));
  const first = start('a');
  const second = start('b');
  await assert.rejects(start('c'), { code: 'unavailable' });
  begun[0]!.done(new Error('broken'));
  await assert.rejects(first, /broken/);
  assert.deepEqual(names(), ['a', 'b']);
  begun[1]!.done();
  assert.equal(await second, 'b');
  const third = start('d');
  begun[2]!.done();
  assert.equal(await third, 'd');
});
