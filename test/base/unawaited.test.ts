import assert from 'node:assert/strict';
import test from 'node:test';
import { onUnawaitedFault, unawaited } from '#src/base/async/unawaited.ts';

test('a promise that nobody awaits is reported with its place if it rejects, and not if it resolves', async () => {
  const faults: unknown[] = [];
  using _listening = onUnawaitedFault((error, place) => faults.push([(error as Error).message, place]));
  unawaited(Promise.resolve(), 'test: resolved');
  unawaited(undefined, 'test: nothing to wait for');
  const rejected = Promise.reject(new Error('EBUSY'));
  unawaited(rejected, 'test: rejected');
  await rejected.catch(() => undefined);
  assert.deepEqual(faults, [['EBUSY', 'test: rejected']]);
});
