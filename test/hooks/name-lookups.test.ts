/** The lookups of host names that workspaces share. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { shareLookups } from '#src/hooks/name-lookups.ts';
import { deferred } from '#test/support/deferred.ts';

test('a workspace whose names are not resolved delays the names of others by one lookup', async () => {
  const begun: string[] = [];
  const first = deferred<readonly string[]>();
  const resolve = shareLookups((name) => {
    begun.push(name);
    return name === 'slow-0' ? first.promise : Promise.resolve(['192.0.2.1']);
  });
  const { signal } = new AbortController();
  const slow = [0, 1, 2].map((at) => resolve(`slow-${at}`, 'one', signal));
  const other = resolve('receiver', 'two', signal);
  await nextTurn();
  assert.deepEqual(begun, ['slow-0']);
  first.resolve(['192.0.2.2']);
  assert.deepEqual(await other, ['192.0.2.1']);
  await Promise.all(slow);
  assert.equal(begun.indexOf('receiver') <= 2, true, begun.join());
});

test('a lookup keeps its place while its caller waits no longer, and one that waits is given up', async () => {
  const begun: string[] = [];
  const first = deferred<readonly string[]>();
  const resolve = shareLookups((name) => {
    begun.push(name);
    return first.promise;
  });
  const leaving = new AbortController();
  const kept = resolve('first', 'one', leaving.signal);
  const waiting = resolve('second', 'one', leaving.signal);
  leaving.abort();
  await assert.rejects(waiting);
  first.resolve(['192.0.2.1']);
  await kept;
  assert.deepEqual(begun, ['first']);
});
