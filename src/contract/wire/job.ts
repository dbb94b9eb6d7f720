/** Jobs: work that begins by itself at the instants of a schedule. */
import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { ArgumentsSchema } from './session.ts';
import { closed, MetadataSchema, nullable, oneOf, ShownMetadata, Timestamp, type Wire } from './shape.ts';

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

/** The most cells that a job names. */
const MAX_CELLS = 1000;
/** The most often that a failed occurrence is repeated. */
const MAX_RETRIES = 10;

/** The longest prompt of a job, in characters. */
const MAX_PROMPT_CHARS = 20_000;

const target = {
  notebookId: Type.String({ minLength: 1, maxLength: 200 }),
  cells: Type.Optional(
    Type.Array(CellIdSchema, {
      minItems: 1,
      maxItems: MAX_CELLS,
      description: 'The cells that run, after the cells that they depend on. Omitted: all cells.',
    }),
  ),
};

const TargetSchema = Type.Union(
  [
    Type.Object(
      {
        ...target,
        datasourceSlugs: Type.Optional(
          Type.Array(Type.String({ minLength: 1, maxLength: 120 }), {
            maxItems: 100,
            description: 'The datasources that the notebook may use. Omitted: those of the notebook.',
          }),
        ),
      },
      {
        $id: 'NotebookTarget',
        ...closed,
        description:
          'The notebook as it is when the job fires, on a session of its own. The session works on a copy, which is deleted ' +
          'afterwards; the runs are kept.',
      },
    ),
    Type.Object(
      { ...target, session: Type.Literal('open') },
      {
        $id: 'OpenSessionTarget',
        ...closed,
        description:
          'The open session of the notebook. An instant at which there is none is skipped with the reason `no_session`, and one at ' +
          'which the session has other work with the reason `busy`. A session that sleeps is woken.',
      },
    ),
    Type.Object(
      {
        agentSessionId: Type.String({ minLength: 1, maxLength: 200 }),
        prompt: Type.String({ minLength: 1, maxLength: MAX_PROMPT_CHARS }),
      },
      {
        $id: 'ConversationTarget',
        ...closed,
        description:
          'A prompt in an agent conversation that the owner of the job can use. An instant at which the conversation answers another ' +
          'prompt is skipped with the reason `conversation_busy`, and one at which it is closed with `conversation_closed`. Only ' +
          'members who can read the conversation see the job.',
      },
    ),
  ],
  {
    $id: 'JobTarget',
    examples: [
      { notebookId: 'nb_01k6gq0000aaaaaaaaaaaaaaaa' },
      { notebookId: 'nb_01k6gq0000aaaaaaaaaaaaaaaa', session: 'open' },
      { agentSessionId: 'conv_01k6gq0000aaaaaaaaaaaaaaaa', prompt: 'Summarise the news of the day.' },
    ],
  },
);
export type JobTarget = Wire<typeof TargetSchema>;

const members = {
  name: nullable(Type.String({ minLength: 1, maxLength: 200, description: 'A name for people.' })),
  schedule: ScheduleSchema,
  timeZone: Type.String({
    minLength: 1,
    maxLength: 100,
    description: 'The name of a time zone, such as `Europe/Berlin`. It applies to `cron`.',
  }),
  arguments: ArgumentsSchema,
  timeoutS: nullable(
    Type.Integer({
      minimum: 1,
      maximum: 86_400,
      description: 'How many seconds a run may take. Null: no deadline.',
    }),
  ),
  overlap: oneOf(['skip', 'queue', 'cancel'], {
    description:
      'What happens with an instant that comes during an occurrence. `skip`, the default: it is skipped with the reason `overlap`. ' +
      '`queue`: one instant waits, fires when the occurrence is over, and further ones are skipped. `cancel`: the occurrence is ' +
      'cancelled with the reason `superseded`, and the instant fires then.',
  }),
  catchUp: oneOf(['last', 'none', 'all'], {
    description:
      'What happens with instants that passed while the server was not running. `last`, the default: the last of them fires, and the ' +
      'earlier ones are skipped. `none`: instants that are more than a minute late are skipped. `all`: the last hundred of them ' +
      'fire one after another, the oldest first, and the earlier ones are skipped.',
  }),
  retries: Type.Integer({
    minimum: 0,
    maximum: MAX_RETRIES,
    description:
      'How often an occurrence is attempted again after an end that is not the fault of the notebook, such as a lost kernel or a ' +
      'limit of sessions. The first pause is 30 seconds, and each further pause is twice as long. The default is 2.',
  }),
  retryOn: oneOf(['server', 'all'], {
    description:
      'Which ends are attempted again. `server`, the default: ends that are not the fault of the notebook. `all`: each failure, also ' +
      'one of a cell.',
  }),
  outputs: Type.Array(Type.Literal('html'), {
    maxItems: 1,
    description:
      'What is kept of each run besides its outputs. `html`: the notebook as a static page, which the occurrence names as its ' +
      '`report`. For notebooks on a session of their own.',
  }),
};

const optionalMembers = {
  name: Type.Optional(members.name),
  timeZone: Type.Optional(members.timeZone),
  arguments: Type.Optional(members.arguments),
  timeoutS: Type.Optional(members.timeoutS),
  overlap: Type.Optional(members.overlap),
  catchUp: Type.Optional(members.catchUp),
  retries: Type.Optional(members.retries),
  retryOn: Type.Optional(members.retryOn),
  outputs: Type.Optional(members.outputs),
  metadata: Type.Optional(MetadataSchema),
  paused: Type.Optional(Type.Boolean({ description: 'Whether the job fires only when a person fires it.' })),
};

export const NewJobSchema = Type.Object(
  { target: TargetSchema, schedule: members.schedule, ...optionalMembers },
  {
    $id: 'NewJob',
    ...closed,
    examples: [
      {
        name: 'Sales of the week',
        target: { notebookId: 'nb_01k6gq0000aaaaaaaaaaaaaaaa' },
        schedule: { cron: '0 7 * * MON' },
        timeZone: 'Europe/Berlin',
      },
    ],
  },
);
export type NewJob = Wire<typeof NewJobSchema>;

export const JobChangeSchema = Type.Object(
  {
    expectedUpdatedAt: Type.String({
      format: 'date-time',
      maxLength: 64,
      description:
        'The `updatedAt` of your last read of the job. When the job has changed since: 409 `stale_update`.',
    }),
    schedule: Type.Optional(members.schedule),
    ...optionalMembers,
    takeOver: Type.Optional(
      Type.Literal(true, {
        description:
          'Makes you the owner of the job, which then works with your rights. For owners of the workspace.',
      }),
    ),
  },
  {
    $id: 'JobChange',
    ...closed,
    examples: [{ expectedUpdatedAt: '2027-01-01T06:00:00.000Z', paused: true }],
  },
);
export type JobChange = Wire<typeof JobChangeSchema>;

const JobReasonSchema = Type.Object(
  { code: Type.String(), message: Type.String() },
  { $id: 'JobReason', ...closed },
);

const JobStatusSchema = oneOf(['waiting', 'due', 'running', 'cancelling', 'backing-off', 'paused', 'ended'], {
  description:
    '`waiting` for its next instant. `due`: an occurrence has begun, and its run has not. `running`. `cancelling`: the run is being ' +
    'cancelled, because the next instant has come (`overlap`). `backing-off`: the occurrence is ' +
    'attempted again after a pause. `paused`. `ended`: the schedule has no further instant.',
});

export const OccurrenceSchema = Type.Object(
  {
    id: Type.String(),
    jobId: Type.String(),
    trigger: oneOf(['schedule', 'person', 'hook'], {
      description: 'Whether the schedule, a person or a hook has fired the job.',
    }),
    dueAt: Timestamp,
    lastDueAt: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'Present when this one record stands for all instants from `dueAt` to this one. They passed before the last hundred ' +
          'missed instants.',
      }),
    ),
    status: oneOf(
      ['queued', 'due', 'running', 'backing-off', 'completed', 'failed', 'cancelled', 'skipped'],
      {
        description:
          '`queued`: waits for the occurrence before it. `due`: has begun, and its run has not. `backing-off`: is attempted again after ' +
          'a pause.',
      },
    ),
    reason: nullable(JobReasonSchema),
    attempts: Type.Integer({ description: 'How many attempts have begun.' }),
    runId: nullable(Type.String({ description: 'The run of the last attempt that had one.' })),
    firedBy: Type.Optional(Type.String({ description: 'The user who has fired the job.' })),
    hookInId: Type.Optional(Type.String({ description: 'The hook that has fired the job.' })),
    arguments: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Arguments of this occurrence alone, after those of the job: the body of the request to a hook.',
      }),
    ),
    startedAt: nullable({ ...Timestamp, description: 'When the run of the first attempt began.' }),
    finishedAt: nullable(Timestamp),
    report: Type.Optional(
      Type.Object(
        {
          url: nullable(
            Type.String({
              description:
                'The path of the report, which is an asset of the run. Null: there is none, because of `reason`.',
            }),
          ),
          reason: nullable(JobReasonSchema),
        },
        {
          $id: 'JobReport',
          ...closed,
          description:
            'Present once the report of a job with `outputs` was made, soon after the end of the run.',
        },
      ),
    ),
  },
  { $id: 'JobOccurrence', ...closed },
);
export type Occurrence = Wire<typeof OccurrenceSchema>;

export const JobSchema = Type.Object(
  {
    id: Type.String(),
    target: TargetSchema,
    ...members,
    metadata: ShownMetadata,
    paused: Type.Boolean(),
    status: JobStatusSchema,
    reason: nullable(JobReasonSchema),
    failures: Type.Integer({
      description:
        'How many occurrences in a row have failed. After five the job pauses itself, with the `reason`.',
    }),
    currentOccurrenceId: nullable(Type.String()),
    lastOccurrence: nullable(OccurrenceSchema),
    next: Type.Array(Timestamp, { description: 'The next five instants; none while the job is paused.' }),
    ownerId: Type.String({ description: 'The user with whose rights the job works.' }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  {
    $id: 'Job',
    ...closed,
    examples: [
      {
        id: 'job_01k6gq0000aaaaaaaaaaaaaaaa',
        name: 'Sales of the week',
        target: { notebookId: 'nb_01k6gq0000aaaaaaaaaaaaaaaa' },
        schedule: { cron: '0 7 * * MON' },
        timeZone: 'Europe/Berlin',
        arguments: ['--month=3'],
        timeoutS: null,
        overlap: 'skip',
        catchUp: 'last',
        retries: 2,
        retryOn: 'server',
        outputs: [],
        paused: false,
        status: 'waiting',
        reason: null,
        failures: 0,
        currentOccurrenceId: null,
        lastOccurrence: null,
        next: ['2027-01-04T06:00:00.000Z'],
        ownerId: 'ada',
        createdAt: '2027-01-01T06:00:00.000Z',
        updatedAt: '2027-01-01T06:00:00.000Z',
      },
    ],
  },
);
export type Job = Wire<typeof JobSchema>;

export const SchedulePreviewSchema = Type.Object(
  { schedule: members.schedule, timeZone: optionalMembers.timeZone },
  {
    $id: 'SchedulePreview',
    ...closed,
    examples: [{ schedule: { cron: '0 7 * * MON' }, timeZone: 'Europe/Berlin' }],
  },
);

export const ScheduleInstantsSchema = Type.Object(
  { next: Type.Array(Timestamp, { description: 'The next five instants.' }) },
  { $id: 'ScheduleInstants', ...closed },
);
