/** Jobs: work that begins by itself at the instants of a schedule. */
import Type from 'typebox';
import { closed, Timestamp, type Wire } from './shape.ts';

/** The longest expression of a schedule, in characters. */
const MAX_CRON_CHARS = 200;
/** The longest interval, in seconds: a year. */
const MAX_INTERVAL_S = 31_536_000;

export const ScheduleSchema = Type.Union(
  [
    Type.Object(
      {
        cron: Type.String({
          minLength: 1,
          maxLength: MAX_CRON_CHARS,
          description:
            'Five fields (minute, hour, day of the month, month, day of the week), six with seconds in front, or one of `@hourly`, ' +
            '`@daily`, `@weekly`, `@monthly` and `@yearly`. Months and days of the week may have their English names. The times are ' +
            'those of `timeZone`.',
        }),
      },
      { $id: 'CronSchedule', ...closed },
    ),
    Type.Object(
      {
        everyS: Type.Integer({
          minimum: 1,
          maximum: MAX_INTERVAL_S,
          description: 'An interval in seconds. The instants are counted from the creation of the job.',
        }),
      },
      { $id: 'IntervalSchedule', ...closed },
    ),
    Type.Object({ at: Timestamp }, { $id: 'OneInstant', ...closed, description: 'Fires once.' }),
  ],
  {
    $id: 'Schedule',
    examples: [{ cron: '0 7 * * MON' }, { everyS: 900 }, { at: '2027-01-01T06:00:00.000Z' }],
  },
);
export type Schedule = Wire<typeof ScheduleSchema>;
