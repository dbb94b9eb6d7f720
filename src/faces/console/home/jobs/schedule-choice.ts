/** A schedule as people choose it, and its text. The server knows only expressions of cron, intervals and instants. */
import type { Schedule } from '#src/contract/wire/job.ts';
import { instantOf, localTimeOf } from './zoned-time.ts';

export const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'] as const;

/** The kinds of schedules, as the dialog names them. */
export const KINDS = {
  daily: 'Every day',
  weekdays: 'Every weekday, Monday to Friday',
  weekly: 'Every week, on chosen days',
  interval: 'Again and again, at an interval',
  once: 'Once',
  cron: 'By a cron expression',
} as const;
export type ScheduleKind = keyof typeof KINDS;

/** The units of intervals, in seconds. */
export const UNITS = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
export type Unit = keyof typeof UNITS;

/** The values of all fields. Those of other kinds stay while somebody compares kinds. */
export interface ScheduleChoice {
  readonly kind: ScheduleKind;
  /** The local time of day, such as `07:00`. */
  readonly time: string;
  /** Places in `DAYS`. */
  readonly days: readonly number[];
  readonly count: string;
  readonly unit: Unit;
  /** A local date and time, such as `2026-12-07T07:00`. */
  readonly at: string;
  readonly cron: string;
}

const WEEKDAYS = [0, 1, 2, 3, 4];

/** Returns the choice with which the dialog for a new job begins. */
export function firstChoice(timeZone: string): ScheduleChoice {
  const tomorrow = localTimeOf(Date.now() + UNITS.days * 1000, timeZone);
  return {
    kind: 'daily',
    time: '07:00',
    days: [0],
    count: '15',
    unit: 'minutes',
    at: tomorrow.replace(/T.*/, 'T07:00'),
    cron: '0 7 * * MON',
  };
}

/** Returns the schedule; undefined while something is missing. */
export function scheduleOf(choice: ScheduleChoice, timeZone: string): Schedule | undefined {
  const { kind, time, days, count, unit, at, cron } = choice;
  switch (kind) {
    case 'daily':
      return daysAt(time, '*');
    case 'weekdays':
      return daysAt(time, 'MON-FRI');
    case 'weekly':
      return days.length === 0 ? undefined : daysAt(time, [...days].sort().map(shortName).join(','));
    case 'interval': {
      const everyS = Math.round(Number(count) * UNITS[unit]);
      return everyS >= 1 ? { everyS } : undefined;
    }
    case 'once': {
      const instant = instantOf(at, timeZone);
      return instant === undefined ? undefined : { at: instant };
    }
    case 'cron':
      return cron.trim() === '' ? undefined : { cron: cron.trim() };
  }
}

function daysAt(time: string, days: string): Schedule | undefined {
  const [, hour, minute] = /^(\d\d):(\d\d)/.exec(time) ?? [];
  return hour === undefined ? undefined : { cron: `${Number(minute)} ${Number(hour)} * * ${days}` };
}

/** Returns the choice that makes a schedule. */
export function choiceOf(schedule: Schedule, timeZone: string): ScheduleChoice {
  const first = firstChoice(timeZone);
  if ('everyS' in schedule) {
    const { everyS } = schedule;
    const unit =
      (['days', 'hours', 'minutes'] as const).find((each) => everyS % UNITS[each] === 0) ?? 'seconds';
    return { ...first, kind: 'interval', count: String(everyS / UNITS[unit]), unit };
  }
  if ('at' in schedule) return { ...first, kind: 'once', at: localTimeOf(Date.parse(schedule.at), timeZone) };
  const { cron } = schedule;
  const [, minute = '', hour = '', names = ''] = /^(\d\d?) (\d\d?) \* \* (\*|[A-Z,-]+)$/.exec(cron) ?? [];
  const own: ScheduleChoice = { ...first, kind: 'cron', cron };
  const time = `${hour.padStart(2, '0')}:${minute.padStart(2, '0')}`;
  const days = names.split(',').map((name) => DAYS.findIndex((_, day) => shortName(day) === name));
  const kind = names === '*' ? 'daily' : names === 'MON-FRI' ? 'weekdays' : 'weekly';
  if (hour === '' || (kind === 'weekly' && days.includes(-1))) return own;
  return { ...own, kind, time, days: kind === 'weekly' ? days : WEEKDAYS };
}

function shortName(day: number): string {
  return (DAYS[day] ?? '').slice(0, 3).toUpperCase(); // names of days are ASCII
}

/** Returns a schedule in words, such as `Every Monday at 07:00`, without its time zone. */
export function scheduleText(schedule: Schedule, timeZone: string): string {
  const { kind, time, days, count, unit, at, cron } = choiceOf(schedule, timeZone);
  switch (kind) {
    case 'daily':
      return `Every day at ${time}`;
    case 'weekdays':
      return `Every weekday at ${time}`;
    case 'weekly':
      return `Every ${days.map((day) => DAYS[day]).join(', ')} at ${time}`;
    case 'interval':
      return count === '1' ? `Every ${unit.slice(0, -1)}` : `Every ${count} ${unit}`; // the unit is ASCII
    case 'once':
      return `Once, ${at.replace('T', ' at ')}`;
    case 'cron':
      return `By the cron expression ${cron}`;
  }
}
