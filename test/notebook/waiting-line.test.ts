import assert from 'node:assert/strict';
import test from 'node:test';
import { MAX_WAITING, WaitingLine } from '#src/notebook/requests/waiting-line.ts';
import { deferred } from '#test/support/deferred.ts';

test('requests take their turns in order, even after a failed request, and two notebooks do not wait for each other', async () => {
  const line = new WaitingLine('things');
  const first = deferred<number>();
  const had: string[] = [];
  const turn = (name: string) => async () => had.push(name);
  const waiting = [
    line.enter('a', () => first.promise),
    line.enter('a', () => Promise.reject(new Error('failed'))),
    line.enter('a', turn('third')),
  ];
  await line.enter('b', turn('other'));
  assert.deepEqual(had, ['other']);
  first.resolve(1);
  const ends = await Promise.allSettled(waiting);
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.deepEqual(had, ['other', 'third']);
});

test('a hundred requests wait, and one more is refused until there is room', async () => {
  const line = new WaitingLine('things');
  const first = deferred<void>();
  const waiting = Array.from({ length: MAX_WAITING }, (_, at) =>
    line.enter('a', async () => (at === 0 ? first.promise : undefined)),
  );
  await assert.rejects(
    line.enter('a', async () => 1),
    { code: 'quota_exceeded' },
  );
  first.resolve();
  await Promise.all(waiting);
  assert.equal(await line.enter('a', async () => 1), 1);
});
