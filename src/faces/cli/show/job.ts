/** Jobs and their occurrences as text. */
import type { Job, JobTarget, Occurrence, Schedule } from '#src/contract/wire/job.ts';
import { safeLine } from '../safe-text.ts';
import type { Style } from '../style.ts';
import { table } from '../table.ts';
import type { ListColumn } from '../terminal.ts';
import { shortDuration } from './duration.ts';
import { factLines } from './notebook.ts';

/** Returns the columns of the occurrences of a job, with their instants in the time zone of the job. */
export function occurrenceColumns(timeZone: string): readonly ListColumn<Occurrence>[] {
  return [{ title: 'due', of: (one) => dueText(one, timeZone) }, ...OCCURRENCE_COLUMNS];
}

const OCCURRENCE_COLUMNS: readonly ListColumn<Occurrence>[] = [
  { title: 'by', of: ({ trigger, firedBy, hookInId }) => firedBy ?? hookInId ?? trigger },
  { title: 'status', of: ({ status }) => status },
  { title: 'attempts', of: ({ attempts }) => String(attempts) },
  { title: 'took', of: tookText },
  { title: 'run', of: ({ runId }) => runId },
  { title: 'reason', of: ({ reason }) => reasonLine(reason) },
];

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
] as const;

/** Returns a schedule in the words of the options of `troupe jobs create`. */
export function scheduleText({ schedule, timeZone }: Pick<Job, 'schedule' | 'timeZone'>): string {
  if ('cron' in schedule) return `${schedule.cron} (${timeZone})`;
  return 'at' in schedule ? `at ${schedule.at}` : `every ${intervalText(schedule)}`;
}

function intervalText({ everyS }: Extract<Schedule, { everyS: number }>): string {
  const [seconds, unit] = UNITS.find(([size]) => everyS % size === 0) ?? [1, 's'];
  return `${everyS / seconds}${unit}`;
}

/** Returns the first line of a reason; null when there is none. */
export function reasonLine(reason: Job['reason']): string | null {
  return reason?.message.split('\n')[0] ?? null;
}

/**
 * Returns an instant as the local time of a zone, such as `Mon 2027-01-04 07:00:00 GMT+01:00`. An instant in a zone that this
 * machine does not know stays as it is.
 */
export function localTime(instant: string, timeZone: string): string {
  try {
    const parts = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'short',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hourCycle: 'h23',
      timeZoneName: 'longOffset',
    }).formatToParts(new Date(instant));
    const of = (wanted: string) => parts.find(({ type }) => type === wanted)?.value ?? '';
    const date = `${of('year')}-${of('month')}-${of('day')}`;
    return `${of('weekday')} ${date} ${of('hour')}:${of('minute')}:${of('second')} ${of('timeZoneName')}`;
  } catch {
    return instant;
  }
}

/** Returns the lines of the next instants, in the time zone of their schedule. */
export function instantLines(next: readonly string[], timeZone: string): string {
  if (next.length === 0) return 'The schedule has no further instant.\n';
  return `next\n${next.map((instant) => `  ${localTime(instant, timeZone)}\n`).join('')}`;
}

/** Returns a job with its state and its last occurrences, the newest first. */
export function jobText(job: Job, occurrences: readonly Occurrence[], style: Style, color: boolean): string {
  const {
    id,
    name,
    target,
    arguments: words,
    timeoutS,
    catchUp,
    overlap,
    retries,
    retryOn,
    outputs,
    metadata = {},
  } = job;
  const facts = [
    ['job', id],
    ...(name === null ? [] : [['name', safeLine(name)]]),
    ...targetFacts(target),
    ...(words.length === 0 ? [] : [['arguments', safeLine(words.join(' '))]]),
    ['schedule', scheduleText(job)],
    ['owner', job.ownerId],
    ['retries', String(retries)],
    ['retry on', retryOn],
    ['overlap', overlap],
    ['catch-up', catchUp],
    ...(timeoutS === null ? [] : [['timeout', `${timeoutS} s`]]),
    ...(outputs.includes('html') ? [['page', `kept of each run: troupe jobs report ${id}`]] : []),
    ...Object.entries(metadata).map(([key, value]) => ['metadata', safeLine(`${key}=${value}`)]),
    ['status', statusText(job, style)],
    ...job.next.map((instant, index) => [index === 0 ? 'next' : '', localTime(instant, job.timeZone)]),
  ];
  const columns = occurrenceColumns(job.timeZone);
  const titles = columns.map(({ title }) => title);
  const rows = occurrences.map((one) => columns.map(({ of }) => of(one) ?? '-'));
  const history = rows.length === 0 ? '' : `\n${table(titles, rows, color)}`;
  return factLines(facts, style) + history;
}

/** Returns what a job runs, or whom it asks what. */
function targetFacts(target: JobTarget): string[][] {
  if ('prompt' in target)
    return [
      ['conversation', target.agentSessionId],
      ['prompt', target.prompt],
    ];
  return [
    ['notebook', target.notebookId],
    ...('session' in target ? [['session', 'the open session of the notebook']] : []),
    ...(target.cells === undefined ? [] : [['cells', target.cells.join(', ')]]),
  ];
}

/** Returns the status of a job, with the reason for a pause or for failures, and with a command that helps. */
function statusText({ id, status, failures, reason, ownerId }: Job, style: Style): string {
  const paint = status === 'paused' ? style.yellow : failures > 0 ? style.red : style.green;
  const failing =
    failures === 0 || reason !== null
      ? ''
      : `, the last ${counted(failures)} failed: troupe jobs history ${id}`;
  if (status !== 'paused') return `${paint(status)}${failing}`;
  if (reason === null) return `${paint('paused')} by a person: troupe jobs resume ${id}`;
  const advice =
    reason.code === 'owner_left' || reason.code === 'role_too_low'
      ? `An owner of the workspace takes the job over from ${ownerId}: troupe jobs resume ${id} --take-over`
      : reason.code === 'notebook_deleted'
        ? `troupe jobs delete ${id}`
        : `Once the cause is removed: troupe jobs resume ${id}`;
  return `${paint('paused')}: ${reason.message}\n${advice}`;
}

function counted(failures: number): string {
  return failures === 1 ? 'occurrence' : `${failures} occurrences`;
}

function dueText({ dueAt, lastDueAt }: Occurrence, timeZone: string): string {
  const first = localTime(dueAt, timeZone);
  return lastDueAt === undefined ? first : `${first} to ${localTime(lastDueAt, timeZone)}`;
}

function tookText({ status, startedAt, finishedAt }: Occurrence): string | null {
  if (status === 'skipped' || startedAt === null || finishedAt === null) return null;
  return shortDuration(Date.parse(finishedAt) - Date.parse(startedAt));
}
