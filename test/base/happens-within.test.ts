import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import test, { type TestContext } from 'node:test';
import { happensWithin } from '#src/base/time/happens-within.ts';

function watched(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const controller = new AbortController();
  let happened = () => {};
  let ended = 0;
  const waiting = happensWithin(100, controller.signal, (call) => {
    happened = call;
    return () => ended++;
  });
  const released = () => ended === 1 && getEventListeners(controller.signal, 'abort').length === 0;
  return { controller, waiting, happened: () => happened(), released };
}

test('the wait for a condition that is met in time resolves with true, and the watch ends', async (t) => {
  const { waiting, happened, released } = watched(t);
  t.mock.timers.tick(99);
  happened();
  assert.equal(await waiting, true);
  assert.ok(released());
});

test('the wait for a condition that is not met in time resolves with false, and the watch ends', async (t) => {
  const { waiting, released } = watched(t);
  t.mock.timers.tick(100);
  assert.equal(await waiting, false);
  assert.ok(released());
});

test('a signal ends the wait, and a signal that is already aborted prevents the wait', async (t) => {
  const { controller, waiting, released } = watched(t);
  controller.abort();
  assert.equal(await waiting, false);
  assert.ok(released());
  const late = happensWithin(100, controller.signal, () => assert.fail('it watched'));
  assert.equal(await late, false);
});
