/** The tools of MCP for jobs: notebooks that run by a schedule. */
import Type from 'typebox';
import { completed, cut, defineTool, failed, type Tool } from '#src/agent/tools/tool.ts';
import type { Job, Occurrence, Schedule } from '#src/contract/wire/job.ts';
import type { McpCall } from './mcp-call.ts';

const closed = { additionalProperties: false } as const;

const JOB = {
  jobId: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'The id of the job, as list_jobs and create_job return it.',
  }),
};
const PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '20 if not given.' })),
  after: Type.Optional(Type.String({ maxLength: 400, description: 'The nextCursor of the page before.' })),
};
const PAGE_ITEMS = 20;
/** The most characters of a reason. It may quote a traceback. */
const MAX_REASON_CHARS = 500;

/** Returns the tools. They make requests of the API with the rights of the caller. */
export function jobTools(notebookId: ReturnType<typeof Type.String>): Tool<McpCall>[] {
  return [
    defineTool({
      name: 'list_jobs',
      description:
        'The jobs of the workspace, the newest first: notebooks that run by a schedule, with their next instant, and the reason why ' +
        'one is paused.',
      schema: Type.Object({ notebookId: Type.Optional(notebookId), ...PAGE }, closed),
      async run({ limit = PAGE_ITEMS, ...page }, { client, signal }: McpCall) {
        const { items, nextCursor } = await client.jobs.list({ order: 'desc', limit, ...page, signal });
        const jobs = items.map(shownJob);
        const text = jobs.map(lineOf);
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'There are no jobs.', { jobs, nextCursor });
      },
    }),
    defineTool({
      name: 'create_job',
      description:
        'Make a job that runs a notebook by a schedule, on a copy of its own, with the rights of the caller. Give exactly one of ' +
        'cron, everyS and at. The result has the next five instants: tell them to the person.',
      schema: Type.Object(
        {
          notebookId,
          cron: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 200,
              description: 'Minute, hour, day of the month, month, day of the week, such as `0 7 * * MON`.',
            }),
          ),
          everyS: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 31_536_000, description: 'An interval in seconds.' }),
          ),
          at: Type.Optional(
            Type.String({ format: 'date-time', maxLength: 64, description: 'One instant, RFC 3339.' }),
          ),
          timeZone: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 100,
              description: 'The time zone of cron, such as `Europe/Berlin`; UTC if not given.',
            }),
          ),
          name: Type.Optional(
            Type.String({ minLength: 1, maxLength: 200, description: 'A name for people.' }),
          ),
          arguments: Type.Optional(
            Type.Array(Type.String({ maxLength: 4096 }), {
              maxItems: 100,
              description: 'Arguments of the notebook, such as `--month=3`, for mo.cli_args().',
            }),
          ),
          timeoutS: Type.Optional(
            Type.Integer({ minimum: 1, maximum: 86_400, description: 'How many seconds a run may take.' }),
          ),
        },
        closed,
      ),
      async run({ notebookId: id, cron, everyS, at, ...members }, { client, signal }: McpCall) {
        const schedules: Schedule[] = [
          ...(cron === undefined ? [] : [{ cron }]),
          ...(everyS === undefined ? [] : [{ everyS }]),
          ...(at === undefined ? [] : [{ at }]),
        ];
        const [schedule, another] = schedules;
        if (schedule === undefined || another !== undefined)
          return failed('Give exactly one of cron, everyS and at.');
        const job = await client.jobs.create(
          { target: { notebookId: id }, schedule, ...members },
          { signal },
        );
        return jobOutcome(job);
      },
    }),
    defineTool({
      name: 'fire_job',
      description:
        'Fire a job now, also while it is paused. It returns at once; job_history shows how the occurrence ends, and get_run its ' +
        'outputs.',
      schema: Type.Object(JOB, closed),
      async run({ jobId }, { client, signal }: McpCall) {
        const occurrence = shownOccurrence(await client.jobs.run(jobId, { signal }));
        return completed(occurrenceLine(occurrence), { occurrence });
      },
    }),
    defineTool({
      name: 'pause_job',
      description:
        'Pause a job: it fires only when somebody fires it. An occurrence in progress is finished.',
      schema: Type.Object(JOB, closed),
      run: ({ jobId }, call: McpCall) => setPaused(jobId, true, call),
    }),
    defineTool({
      name: 'resume_job',
      description: 'Resume a paused job, beginning with its next instant after now.',
      schema: Type.Object(JOB, closed),
      run: ({ jobId }, call: McpCall) => setPaused(jobId, false, call),
    }),
    defineTool({
      name: 'job_history',
      description:
        'The occurrences of a job, the newest first: what ran, failed, or was skipped and why. get_run shows the outputs of a run.',
      schema: Type.Object({ ...JOB, ...PAGE }, closed),
      async run({ jobId, limit = PAGE_ITEMS, ...page }, { client, signal }: McpCall) {
        const query = { order: 'desc', limit, ...page, signal } as const;
        const { items, nextCursor } = await client.jobs.occurrences(jobId, query);
        const occurrences = items.map(shownOccurrence);
        const text = occurrences.map(occurrenceLine);
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'The job has not fired yet.', { occurrences, nextCursor });
      },
    }),
  ];
}

/** The state of the job is read for each change, because the caller wants it paused or not whatever others have changed. */
async function setPaused(jobId: string, paused: boolean, { client, signal }: McpCall) {
  const { updatedAt: expectedUpdatedAt } = await client.jobs.get(jobId, { signal });
  return jobOutcome(await client.jobs.update(jobId, { expectedUpdatedAt, paused }, { signal }));
}

function jobOutcome(job: Job) {
  const shown = shownJob(job);
  const next = shown.next.map((instant) => `\nnext ${instant}`).join('');
  return completed(lineOf(shown) + next, { job: shown });
}

/** Returns the members of a job that a model needs. */
function shownJob({ id: jobId, name, target, schedule, timeZone, status, reason, failures, next }: Job) {
  return { jobId, name, target, schedule, timeZone, status, reason: cutReason(reason), failures, next };
}

function lineOf({
  jobId,
  name,
  schedule,
  timeZone,
  status,
  reason,
  next,
}: ReturnType<typeof shownJob>): string {
  const when = 'cron' in schedule ? `${schedule.cron} (${timeZone})` : JSON.stringify(schedule);
  const why = reason === null ? '' : `: ${reason.message}`;
  const then = next[0] === undefined ? '' : `, next ${next[0]}`;
  return `${jobId} ${name ?? '(no name)'}, ${when}, ${status}${why}${then}`;
}

function shownOccurrence(occurrence: Occurrence) {
  const {
    id: occurrenceId,
    trigger,
    dueAt,
    status,
    reason,
    attempts,
    runId,
    startedAt,
    finishedAt,
  } = occurrence;
  const times = { dueAt, startedAt, finishedAt };
  return { occurrenceId, trigger, status, reason: cutReason(reason), attempts, runId, ...times };
}

function occurrenceLine({ dueAt, status, reason, runId }: ReturnType<typeof shownOccurrence>): string {
  const why = reason === null ? '' : `: ${reason.message}`;
  return `${dueAt} ${status}${runId === null ? '' : ` ${runId}`}${why}`;
}

function cutReason(reason: Job['reason']): Job['reason'] {
  return reason && { code: reason.code, message: cut(reason.message, MAX_REASON_CHARS) };
}
