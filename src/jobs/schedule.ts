/**
 * The instants of a schedule: of an expression of cron in a time zone, of an interval, or one instant. The rules for local times
 * that do not exist or come twice are those of `croner`, and hold for each time zone that Intl knows.
 *
 * A schedule of fixed times (no `*`, `?` or step in seconds, minutes and hours) fires a local time that is skipped at the first
 * valid time after it, and a local time that comes twice only the first time. Every other schedule goes by the clock: it has no
 * instant in a skipped hour, and goes on through a repeated one.
 */
import { Cron } from 'croner';
import { AppError } from '#src/base/errors/errors.ts';
import type { Schedule } from '#src/contract/wire/job.ts';

/** A schedule with the facts that its instants depend on. */
export interface Timetable {
  readonly schedule: Schedule;
  /** The name of a time zone, such as `Europe/Berlin`. */
  readonly timeZone: string;
  /** The time from which intervals are counted, in milliseconds since 1970. */
  readonly anchorMs: number;
}

/** The latest instant that JavaScript can represent, in milliseconds since 1970. */
const MAX_MS = 8_640_000_000_000_000;
/** The latest year in which an instant is looked for, because later years have no text of four digits. */
const LAST_MS = Date.UTC(9999, 0, 1);
/** The first instant whose text has a year of more than four digits. */
const END_MS = Date.UTC(10_000, 0, 1);

const NICKNAMES = new Set(['@hourly', '@daily', '@midnight', '@weekly', '@monthly', '@yearly', '@annually']);

/**
 * Throws `invalid_request` for a time zone that Intl does not know, for an expression that is not valid, and for a schedule that
 * has no instant after `nowMs`.
 */
export function checkTimetable(timetable: Timetable, nowMs: number): void {
  const { schedule, timeZone } = timetable;
  if (!isTimeZone(timeZone))
    throw invalid(
      '/timeZone',
      `There is no time zone with the name ${timeZone}. Names are such as Europe/Berlin and UTC.`,
      'is not the name of a time zone',
    );
  if ('cron' in schedule) checkExpression(schedule.cron);
  if (instantAfter(timetable, nowMs) === null)
    throw invalid('/schedule', 'The schedule has no instant in the future.', 'has no instant in the future');
}

/** Returns the first instant after `ms`, both in milliseconds since 1970; null when there is none. */
export function instantAfter(timetable: Timetable, ms: number): number | null {
  return instantsAfter(timetable, ms, 1)[0] ?? null;
}

/** Returns the first `count` instants after `ms`, in milliseconds since 1970. */
export function instantsAfter(
  { schedule, timeZone, anchorMs }: Timetable,
  ms: number,
  count: number,
): number[] {
  if ('at' in schedule) return [atMs(schedule.at)].filter((at) => at > ms && at < END_MS);
  if ('everyS' in schedule) {
    const stepMs = schedule.everyS * 1000;
    const first = Math.max(1, Math.floor((ms - anchorMs) / stepMs) + 1);
    return Array.from({ length: count }, (_, i) => anchorMs + (first + i) * stepMs);
  }
  return cronOf(schedule.cron, timeZone)
    .nextRuns(count, new Date(ms))
    .map((date) => date.getTime())
    .filter((instant) => instant <= LAST_MS);
}

/**
 * Returns the last `count` instants that are after `afterMs` and not after `untilMs`, the newest last, all in milliseconds since
 * 1970. The cost depends on `count` and on the number of instants in this time, however long the time is.
 */
export function lastInstants(
  timetable: Timetable,
  { afterMs, untilMs, count }: { readonly afterMs: number; readonly untilMs: number; readonly count: number },
): number[] {
  const { schedule, timeZone, anchorMs } = timetable;
  if ('at' in schedule) return [atMs(schedule.at)].filter((ms) => ms > afterMs && ms <= untilMs);
  if ('everyS' in schedule) {
    const stepMs = schedule.everyS * 1000;
    const last = Math.floor((untilMs - anchorMs) / stepMs);
    const first = Math.max(1, last - count + 1, Math.floor((afterMs - anchorMs) / stepMs) + 1);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => anchorMs + (first + i) * stepMs);
  }
  // The instants before the next whole second, because `previousRuns` leaves out the instant that it is given.
  const before = new Date(Math.min((Math.floor(untilMs / 1000) + 1) * 1000, MAX_MS));
  const cron = cronOf(schedule.cron, timeZone);
  const newestFirst: number[] = [];
  // In growing steps, because the instants of a rare date before `afterMs` would cost more than all others.
  while (newestFirst.length < count) {
    const wanted = Math.min(Math.max(1, newestFirst.length), count - newestFirst.length);
    const oldest = newestFirst.at(-1);
    const found = cron.previousRuns(wanted, oldest === undefined ? before : new Date(oldest));
    newestFirst.push(...found.map((date) => date.getTime()));
    if (found.length < wanted || (newestFirst.at(-1) ?? afterMs) <= afterMs) break;
  }
  return newestFirst.filter((ms) => ms > afterMs && ms <= untilMs).reverse();
}

/** Returns whether Intl knows a time zone with this name. An offset such as `+01:00` is not a name. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function checkExpression(expression: string): void {
  const fields = expression.trim().split(/\s+/);
  const name = expression.trim().toLowerCase();
  const isNickname = NICKNAMES.has(name);
  if (name.startsWith('@') && !isNickname)
    throw invalid(
      '/schedule/cron',
      `The expression is not one of the known names: ${[...NICKNAMES].join(', ')}.`,
      'is not one of the known names',
    );
  if (!isNickname && fields.length !== 5 && fields.length !== 6)
    throw invalid(
      '/schedule/cron',
      `The expression has ${counted(fields.length)}. It needs five fields, six with seconds, or a name such as @daily.`,
      'has not five or six fields',
    );
  try {
    cronOf(expression, 'UTC');
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : '';
    throw invalid('/schedule/cron', `The expression of the schedule is not valid: ${why}`, 'is not valid');
  }
}

function counted(fields: number): string {
  return fields === 1 ? 'one field' : `${fields} fields`;
}

/** Returns the expression of cron, parsed. It starts no timer. */
function cronOf(expression: string, timezone: string): Cron {
  return new Cron(expression, {
    timezone,
    paused: true,
    mode: '5-or-6-parts',
    fixedTimeRule: 'no-wildcard',
  });
}

function atMs(at: string): number {
  return Date.parse(at);
}

function invalid(path: string, detail: string, message: string): AppError {
  return new AppError('invalid_request', detail, { errors: [{ path, message }] });
}
