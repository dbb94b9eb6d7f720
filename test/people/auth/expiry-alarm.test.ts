import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { ExpiryAlarm } from '#src/people/auth/expiry-alarm.ts';

/** An alarm that uses a clock which the test sets; `rings` has the times at which it rang. */
function alarmOf(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const rings: number[] = [];
  const alarm = new ExpiryAlarm(() => rings.push(Date.now()), Date.now, assert.ifError);
  t.after(() => alarm[Symbol.dispose]());
  return { alarm, rings };
}

test('an alarm fires at each of its times, in order', (t) => {
  const { alarm, rings } = alarmOf(t);
  for (const ms of [3_000, 1_000, 3_000, 2_000, Number.POSITIVE_INFINITY]) alarm.add(ms);
  for (let ms = 0; ms < 10_000; ms += 500) t.mock.timers.tick(500);
  assert.deepEqual(rings, [1_000, 2_000, 3_000]);
  alarm.add(20_000);
  t.mock.timers.tick(9_999);
  assert.equal(rings.length, 3);
  t.mock.timers.tick(1);
  assert.equal(rings.at(-1), 20_000);
});

test('an alarm that is far in the future checks the clock once a minute', (t) => {
  const { alarm, rings } = alarmOf(t);
  const day = 86_400_000;
  alarm.add(100 * day);
  t.mock.timers.setTime(100 * day - 30_000); // the clock was set
  t.mock.timers.tick(60_000);
  assert.equal(rings.length, 1);
});

test('a disposed alarm does not fire', (t) => {
  const { alarm, rings } = alarmOf(t);
  alarm.add(1_000);
  alarm[Symbol.dispose]();
  t.mock.timers.tick(2_000);
  assert.deepEqual(rings, []);
});

test('an alarm whose action throws reports that, and fires the next time', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  const faults: unknown[] = [];
  const fault = new Error('the action failed');
  const alarm = new ExpiryAlarm(
    () => {
      throw fault;
    },
    Date.now,
    (error) => faults.push(error),
  );
  t.after(() => alarm[Symbol.dispose]());
  alarm.add(1_000);
  alarm.add(2_000);
  t.mock.timers.tick(1_000);
  assert.deepEqual(faults, [fault]);
  t.mock.timers.tick(1_000);
  assert.deepEqual(faults, [fault, fault]);
});
