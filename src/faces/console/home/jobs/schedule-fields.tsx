import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useId } from 'preact/hooks';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Schedule } from '#src/contract/wire/job.ts';
import { Problem } from '../../parts/problem.tsx';
import { DAYS, KINDS, type ScheduleChoice, scheduleOf, UNITS } from './schedule-choice.ts';
import { timeZones, zonedText } from './zoned-time.ts';

/** The pause in typing after which the next instants are requested. */
const ASK_AFTER_MS = 300;
const SHOWN_INSTANTS = 5;

/** What to do while a field of a kind of schedule is empty. */
const MISSING: Readonly<Record<ScheduleChoice['kind'], string>> = {
  daily: 'Enter a time of day.',
  weekdays: 'Enter a time of day.',
  weekly: 'Enter a time of day.',
  interval: 'Enter a number of at least 1.',
  once: 'Enter a date and a time.',
  cron: 'Enter a cron expression.',
};

interface ScheduleFieldsProps {
  readonly client: Client;
  readonly choice: Signal<ScheduleChoice>;
  readonly timeZone: Signal<string>;
  /** When the job was created, from which its interval is counted; undefined for a new job. */
  readonly createdAt: string | undefined;
}

/** The fields of a schedule with its time zone, and the next instants, which follow every change. */
export function ScheduleFields({ client, choice, timeZone, createdAt }: ScheduleFieldsProps) {
  const id = useId();
  const { kind, time, days, count, unit, at, cron } = choice.value;
  const set = (change: Partial<ScheduleChoice>) => {
    choice.value = { ...choice.value, ...change };
  };
  const schedule = scheduleOf(choice.value, timeZone.value);
  const { next, error } = useInstants(client, schedule, timeZone.value, createdAt);
  const wrongZone = mistakeIn(error, '/timeZone');
  const wrongSchedule = mistakeIn(error, '/schedule');
  const invalid =
    wrongSchedule === undefined ? {} : { 'aria-invalid': true, 'aria-describedby': `${id}-wrong` };
  return (
    <fieldset>
      <legend>When</legend>
      <label>
        How often
        <select
          value={kind}
          onChange={(event) => set({ kind: event.currentTarget.value as ScheduleChoice['kind'] })}
        >
          {Object.entries(KINDS).map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {kind === 'weekly' && (
        <fieldset class="days">
          <legend>Days</legend>
          {DAYS.map((name, day) => (
            <label key={name} class="check">
              <input
                type="checkbox"
                checked={days.includes(day)}
                onChange={({ currentTarget: { checked } }) =>
                  set({ days: checked ? [...days, day] : days.filter((one) => one !== day) })
                }
              />
              {name}
            </label>
          ))}
        </fieldset>
      )}
      {(kind === 'daily' || kind === 'weekdays' || kind === 'weekly') && (
        <label>
          At
          <input
            type="time"
            required
            value={time}
            {...invalid}
            onInput={(event) => set({ time: event.currentTarget.value })}
          />
        </label>
      )}
      {kind === 'interval' && (
        <div class="pair">
          <label>
            Every
            <input
              type="number"
              required
              min={1}
              step={1}
              value={count}
              {...invalid}
              onInput={(event) => set({ count: event.currentTarget.value })}
            />
          </label>
          <label>
            Unit
            <select
              value={unit}
              onChange={(event) => set({ unit: event.currentTarget.value as ScheduleChoice['unit'] })}
            >
              {Object.keys(UNITS).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </div>
      )}
      {kind === 'once' && (
        <label>
          Date and time
          <input
            type="datetime-local"
            required
            max="9999-12-31T00:00"
            value={at}
            {...invalid}
            onInput={(event) => set({ at: event.currentTarget.value })}
          />
        </label>
      )}
      {kind === 'cron' && (
        <>
          <label>
            Cron expression
            <input
              class="mono"
              required
              maxLength={200}
              spellcheck={false}
              autocomplete="off"
              autocapitalize="off"
              value={cron}
              {...invalid}
              aria-describedby={`${id}-hint ${id}-wrong`}
              onInput={(event) => set({ cron: event.currentTarget.value })}
            />
          </label>
          <small id={`${id}-hint`}>
            Minute, hour, day of the month, month, day of the week: <code>30 6 1 * *</code> is 06:30 on the
            first day of each month.
          </small>
        </>
      )}
      {wrongSchedule !== undefined && (
        <p class="wrong" id={`${id}-wrong`} role="alert">
          {wrongSchedule}
        </p>
      )}
      <label>
        Time zone
        <input
          required
          maxLength={100}
          list={`${id}-zones`}
          autocomplete="off"
          spellcheck={false}
          value={timeZone.value}
          {...(wrongZone === undefined ? {} : { 'aria-invalid': true, 'aria-describedby': `${id}-zone` })}
          onInput={(event) => {
            timeZone.value = event.currentTarget.value;
          }}
        />
        <datalist id={`${id}-zones`}>
          {timeZones().map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
      {wrongZone !== undefined && (
        <p class="wrong" id={`${id}-zone`} role="alert">
          {wrongZone}
        </p>
      )}
      <div class="next" role="status" aria-label="The next times">
        {schedule === undefined ? (
          <p class="faint">{kind === 'weekly' && days.length === 0 ? 'Choose a day.' : MISSING[kind]}</p>
        ) : (
          next !== undefined && <Instants next={next} timeZone={timeZone.value} />
        )}
      </div>
      {error !== undefined && wrongSchedule === undefined && wrongZone === undefined && (
        <Problem error={error} />
      )}
    </fieldset>
  );
}

/** The next instants of a schedule, in its time zone. */
export function Instants({
  next,
  timeZone,
}: {
  readonly next: readonly string[];
  readonly timeZone: string;
}) {
  return (
    <>
      <p>
        {next.length === 1 ? 'It runs once' : 'The next times'}, in the time zone <bdi>{timeZone}</bdi>:
      </p>
      <ol>
        {next.map((timestamp) => (
          <li key={timestamp}>
            <time dateTime={timestamp}>{zonedText(timestamp, timeZone)}</time>
          </li>
        ))}
      </ol>
    </>
  );
}

/** Returns the sentence about a mistake in this member of the request or below; undefined when there is none. */
function mistakeIn(error: unknown, path: string): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  return error.errors.some((one) => one.path.startsWith(path)) ? error.detail : undefined;
}

interface Answer {
  readonly next?: readonly string[];
  readonly error?: unknown;
}

/** Returns the next instants of a schedule, after a short pause. An answer for an earlier schedule is not shown. */
function useInstants(
  client: Client,
  schedule: Schedule | undefined,
  timeZone: string,
  createdAt: string | undefined,
): Answer {
  const answer = useSignal<Answer>({});
  const key = JSON.stringify([schedule, timeZone]);
  useEffect(() => {
    answer.value = {};
    if (schedule === undefined) return;
    const gone = new AbortController();
    const timer = setTimeout(() => {
      const asked = client.jobs.preview(schedule, timeZone, { signal: gone.signal });
      asked.then(
        ({ next }) => {
          const isCounted = 'everyS' in schedule && createdAt !== undefined;
          // The server counts the interval of a schedule without a job from now.
          if (!gone.signal.aborted)
            answer.value = { next: isCounted ? countedFrom(createdAt, schedule.everyS) : next };
        },
        (error: unknown) => {
          if (!gone.signal.aborted) answer.value = { error };
        },
      );
    }, ASK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [key]);
  return answer.value;
}

/** Returns the next instants of an interval that is counted from the creation of its job. */
function countedFrom(createdAt: string, everyS: number): string[] {
  const stepMs = everyS * 1000;
  const firstMs = Date.parse(createdAt);
  const passed = Math.max(0, Math.floor((Date.now() - firstMs) / stepMs));
  return Array.from({ length: SHOWN_INSTANTS }, (_, i) =>
    new Date(firstMs + (passed + 1 + i) * stepMs).toISOString(),
  );
}
