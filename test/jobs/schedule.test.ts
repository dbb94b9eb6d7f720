import assert from 'node:assert/strict';
import test from 'node:test';
import { Cron } from 'croner';
import { AppError } from '#src/base/errors/errors.ts';
import type { Schedule } from '#src/contract/wire/job.ts';
import { checkTimetable, instantAfter, instantsAfter, lastInstants } from '#src/jobs/schedule.ts';

const MINUTE_MS = 60_000;
const YEAR = { from: Date.UTC(2027, 0, 1), until: Date.UTC(2028, 0, 1) };

test('a local time that is skipped fires at the next valid time', () => {
  const berlin = { schedule: { cron: '30 2 * * *' }, timeZone: 'Europe/Berlin', anchorMs: 0 };
  assert.deepEqual(texts(instantsAfter(berlin, Date.parse('2027-03-27T12:00:00Z'), 2)), [
    '2027-03-28T01:00:00.000Z',
    '2027-03-29T00:30:00.000Z',
  ]);
});

test('a fixed local time that comes twice fires only the first time', () => {
  const berlin = { schedule: { cron: '30 2 * * *' }, timeZone: 'Europe/Berlin', anchorMs: 0 };
  assert.deepEqual(texts(instantsAfter(berlin, Date.parse('2027-10-30T12:00:00Z'), 2)), [
    '2027-10-31T00:30:00.000Z',
    '2027-11-01T01:30:00.000Z',
  ]);
});

test('an interval is counted from its anchor, and its first instant is one interval after the anchor', () => {
  const every = { schedule: { everyS: 90 }, timeZone: 'UTC', anchorMs: 1_000_000 };
  assert.deepEqual(instantsAfter(every, 0, 2), [1_090_000, 1_180_000]);
  assert.deepEqual(instantsAfter(every, 1_090_000, 1), [1_180_000]);
  assert.equal(instantAfter(every, 1_089_999), 1_090_000);
});

test('one instant fires once', () => {
  const once = { schedule: { at: '2027-01-01T06:00:00.000Z' }, timeZone: 'UTC', anchorMs: 0 };
  const at = Date.parse('2027-01-01T06:00:00Z');
  assert.deepEqual(instantsAfter(once, at - 1, 5), [at]);
  assert.equal(instantAfter(once, at), null);
});

test('the last instants of a long time are found without the earlier ones', () => {
  const second = { schedule: { cron: '* * * * * *' }, timeZone: 'UTC', anchorMs: 0 };
  const [afterMs, untilMs] = [Date.UTC(2000), Date.UTC(2027)];
  assert.deepEqual(lastInstants(second, { afterMs, untilMs, count: 2 }), [untilMs - 1000, untilMs]);
  const every = { schedule: { everyS: 1 }, timeZone: 'UTC', anchorMs: 0 };
  assert.deepEqual(lastInstants(every, { afterMs, untilMs, count: 2 }), [untilMs - 1000, untilMs]);
});

test('the last instant of a rare date is found without the ones of the centuries before it', (t) => {
  const previous = t.mock.method(Cron.prototype, 'previousRuns');
  const rare = { schedule: { cron: '0 0 29 2 +MON' }, timeZone: 'UTC', anchorMs: 0 };
  const at = Date.UTC(2044, 1, 29);
  assert.deepEqual(lastInstants(rare, { afterMs: at - 1, untilMs: at, count: 101 }), [at]);
  const asked = previous.mock.calls.map(({ arguments: [count] }) => count);
  assert.deepEqual(asked, [1, 1]);
});

test('the last instants are the same however many of them are asked for', () => {
  for (const cron of ['*/20 * * * *', '30 2 * * *', '0 0 29 2 *']) {
    const of = { schedule: { cron }, timeZone: 'Europe/Berlin', anchorMs: 0 };
    for (const untilMs of [Date.UTC(2027, 2, 28, 12), Date.UTC(2027, 9, 31, 12)]) {
      const within = { afterMs: Date.UTC(1970), untilMs };
      const all = lastInstants(of, { ...within, count: 100 });
      for (const count of [1, 2, 3, 5, 8])
        assert.deepEqual(lastInstants(of, { ...within, count }), all.slice(-count));
    }
  }
});

test('an instant after the year 9999 is refused', () => {
  const last = { schedule: { at: '9999-12-31T23:59:59-23:59' }, timeZone: 'UTC', anchorMs: 0 };
  assert.throws(() => checkTimetable(last, YEAR.from), { code: 'invalid_request' });
});

test('the last instants leave out the instant at the beginning and have the one at the end', () => {
  for (const schedule of [
    { cron: '* * * * *' },
    { everyS: 60 },
    { at: '1970-01-01T00:02:00Z' },
  ] satisfies Schedule[]) {
    const of = { schedule, timeZone: 'UTC', anchorMs: 0 };
    const last = (afterMs: number, untilMs: number) => lastInstants(of, { afterMs, untilMs, count: 1 });
    assert.deepEqual(last(MINUTE_MS, 2 * MINUTE_MS), [2 * MINUTE_MS]);
    assert.deepEqual(last(2 * MINUTE_MS, 3 * MINUTE_MS - 1), []);
    assert.deepEqual(last(0, 2 * MINUTE_MS - 1), 'at' in schedule ? [] : [MINUTE_MS]);
  }
});

test('a schedule that is not valid is refused with the place of the mistake', () => {
  const refused = (schedule: Schedule, timeZone = 'UTC') => {
    try {
      checkTimetable({ schedule, timeZone, anchorMs: 0 }, YEAR.from);
      return undefined;
    } catch (error) {
      assert(error instanceof AppError);
      assert.equal(error.code, 'invalid_request');
      return error.extras.errors?.[0]?.path;
    }
  };
  const cases: [Schedule, string?][] = [
    [{ cron: '61 * * * *' }],
    [{ cron: '* * * *' }],
    [{ cron: '0 0 1 1 * * 2030' }],
    [{ cron: '2030-01-01T00:00:00' }],
    [{ cron: '@reboot' }],
    [{ cron: '* * * * FOO' }],
  ];
  for (const [schedule] of cases) assert.equal(refused(schedule), '/schedule/cron', JSON.stringify(schedule));
  assert.equal(refused({ cron: '0 0 30 2 *' }), '/schedule');
  assert.equal(refused({ at: '2026-01-01T00:00:00Z' }), '/schedule');
  for (const zone of ['Mars/Olympus', '+01:00', '']) assert.equal(refused({ everyS: 60 }, zone), '/timeZone');
  for (const cron of ['@daily', '@Hourly', '0 7 * * MON', '30 0 7 * JAN-MAR 1-5', ' 0  7 * * * '])
    assert.equal(refused({ cron }), undefined, cron);
});

function texts(instants: readonly number[]): string[] {
  return instants.map((ms) => new Date(ms).toISOString());
}
