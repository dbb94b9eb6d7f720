// tier: test, because it computes every minute of a year in six time zones
/** Compares the instants of schedules with the local times of a whole year. These times come from `Intl` alone. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Schedule } from '#src/contract/wire/job.ts';
import { instantsAfter, lastInstants } from '#src/jobs/schedule.ts';

const MINUTE_MS = 60_000;
const YEAR = { from: Date.UTC(2027, 0, 1), until: Date.UTC(2028, 0, 1) };

/** Zones with every kind of change: none, north, south, half an hour, a quarter past, and a change at midnight. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Africa/Cairo',
];

for (const timeZone of ZONES) {
  const minutes = localMinutes(timeZone);

  test(`a fixed time fires once on each day of a year in ${timeZone}`, () => {
    for (const [hour, minute] of [
      [0, 0],
      [0, 30],
      [1, 45],
      [2, 0],
      [2, 30],
      [12, 0],
    ] as const) {
      const fired = instantsOfYear({ cron: `${minute} ${hour} * * *` }, timeZone, 1);
      assert.deepEqual(fired, fixedTimes(minutes, hour * 60 + minute), `${hour}:${minute}`);
    }
  });

  test(`a pattern of minutes goes by the clock for a year in ${timeZone}`, () => {
    const fired = instantsOfYear({ cron: '*/30 * * * *' }, timeZone, 48);
    const expected = minutes.filter(({ local }) => local % 30 === 0).map(({ ms }) => ms);
    assert.deepEqual(fired, expected);
  });

  test(`the last instants before each change of the clocks are those that come after an earlier time in ${timeZone}`, () => {
    for (const cron of ['30 2 * * *', '*/30 * * * *', '0 0 1 * *']) {
      const timetable = { schedule: { cron }, timeZone, anchorMs: 0 };
      for (const untilMs of [YEAR.from, ...changes(minutes)].map((ms) => ms + 5 * 60 * MINUTE_MS)) {
        const last = lastInstants(timetable, { afterMs: 0, untilMs, count: 20 });
        const [first = 0] = last;
        assert.equal(last.length, 20);
        assert.deepEqual(instantsAfter(timetable, first - 1, 20), last, cron);
        const [next = 0] = instantsAfter(timetable, untilMs, 1);
        assert.deepEqual(instantsAfter(timetable, first - 1, 21).at(-1), next, cron);
      }
    }
  });
}

interface LocalMinute {
  readonly ms: number;
  /** The minute of the local day. */
  readonly local: number;
  readonly day: string;
}

/** Returns every minute of the year with its local time, from Intl alone. */
function localMinutes(timeZone: string): LocalMinute[] {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    dateStyle: 'short',
    timeStyle: 'short',
    hourCycle: 'h23',
  });
  const offsets = new Map<number, number>();
  const minutes: LocalMinute[] = [];
  for (let ms = YEAR.from; ms < YEAR.until; ms += MINUTE_MS) {
    // Offsets change at whole quarters of an hour, so that one look suffices for each quarter.
    const quarter = Math.floor(ms / (15 * MINUTE_MS));
    const offsetMs = offsets.get(quarter) ?? offsetAt(format, quarter * 15 * MINUTE_MS);
    offsets.set(quarter, offsetMs);
    const wall = new Date(ms + offsetMs);
    minutes.push({
      ms,
      local: wall.getUTCHours() * 60 + wall.getUTCMinutes(),
      day: wall.toISOString().slice(0, 10),
    });
  }
  return minutes;
}

/** Returns the minutes at which the difference between local time and UTC changes. */
function changes(minutes: readonly LocalMinute[]): number[] {
  return minutes
    .filter(({ local }, i) => i > 0 && (local - (minutes[i - 1]?.local ?? 0) + 1440) % 1440 !== 1)
    .map(({ ms }) => ms);
}

function offsetAt(format: Intl.DateTimeFormat, ms: number): number {
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute) - ms;
}

/** Returns the first minute of each local day that is not before the local time. */
function fixedTimes(minutes: readonly LocalMinute[], local: number): number[] {
  const fired = new Map<string, number>();
  let isBeforeFirst = true;
  for (const minute of minutes) {
    if (minute.local === 0) isBeforeFirst = false;
    if (isBeforeFirst && minute.local > local) continue; // the year begins after the local time of this day
    isBeforeFirst = false;
    if (minute.local >= local && !fired.has(minute.day)) fired.set(minute.day, minute.ms);
  }
  return [...fired.values()];
}

function instantsOfYear(schedule: Schedule, timeZone: string, perDay: number): number[] {
  const timetable = { schedule, timeZone, anchorMs: 0 };
  return instantsAfter(timetable, YEAR.from - 1, 370 * perDay).filter((ms) => ms < YEAR.until);
}
