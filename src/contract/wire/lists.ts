/** The order and the filters of a workspace's lists. */
import Type, { type TSchema } from 'typebox';
import { type RunStatus, RunStatusSchema } from './run.ts';
import { SessionModeSchema, SessionStatusSchema } from './session.ts';
import {
  closed,
  MetadataFilter,
  NotebookUrlSchema,
  nullable,
  oneOf,
  PageQuery,
  ShownMetadata,
  Timestamp,
  type Wire,
} from './shape.ts';

const page = {
  ...PageQuery.properties,
  order: Type.Optional(
    oneOf(['asc', 'desc'], {
      default: 'asc',
      description: '`asc` lists the oldest item first, `desc` the newest.',
    }),
  ),
};

const instant = (description: string) =>
  Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description }));

const creationTimes = {
  createdAfter: instant('Only items created after this time.'),
  createdBefore: instant('Only items created before this time.'),
};

const title = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 200,
    description:
      'Only titles that contain this text. Case does not matter. A page may have fewer items than ' +
      '`limit`, even none, and still a `nextCursor`, because a limited number of titles is compared for ' +
      'each page.',
  }),
);

const identifier = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }));

/** The filters of a list, apart from the page. */
type Filters<Query extends TSchema> = {
  readonly [Name in Exclude<keyof Wire<Query>, 'after' | 'limit'>]?: Wire<Query>[Name] | undefined;
};

/** The query of a list that can begin with the newest item. */
export const OrderedPageQuery = Type.Object(page, closed);

export const JobListQuery = Type.Object(
  { ...page, notebookId: identifier('Only jobs that run this notebook.') },
  closed,
);
export type JobFilters = Filters<typeof JobListQuery>;

export const NotebookListQuery = Type.Object(
  { ...page, ...creationTimes, title, metadata: MetadataFilter },
  closed,
);
export type NotebookFilters = Filters<typeof NotebookListQuery>;

export const NotebookSessionListQuery = Type.Object(
  {
    ...page,
    ...creationTimes,
    status: Type.Optional(
      oneOf(['open', 'starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed'], {
        description: 'Only sessions with this status; `open` means every status except `closed`.',
      }),
    ),
    notebookId: identifier('Only the session of this notebook.'),
    environmentId: identifier('Only sessions that were last opened in this environment.'),
    title,
    metadata: MetadataFilter,
  },
  closed,
);
export type NotebookSessionFilters = Filters<typeof NotebookSessionListQuery>;

export const NotebookSessionSummarySchema = Type.Object(
  {
    sessionId: Type.String({ description: "The notebook's id." }),
    notebookId: Type.String(),
    title: nullable(Type.String({ description: 'The title of the notebook.' })),
    environmentId: nullable(Type.String()),
    mode: SessionModeSchema,
    metadata: ShownMetadata,
    status: SessionStatusSchema,
    currentRunId: nullable(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    url: NotebookUrlSchema,
  },
  { $id: 'NotebookSessionSummary', ...closed },
);
export type NotebookSessionSummary = Wire<typeof NotebookSessionSummarySchema>;

export const AgentSessionListQuery = Type.Object(
  {
    ...page,
    ...creationTimes,
    status: Type.Optional(
      oneOf(['open', 'ready', 'busy', 'closed'], {
        description: 'Only conversations with this status; `open` means every status except `closed`.',
      }),
    ),
  },
  closed,
);
export type AgentSessionFilters = Filters<typeof AgentSessionListQuery>;

export const AuditListQuery = Type.Object(
  {
    ...page,
    ...creationTimes,
    userId: identifier('Only actions of this user.'),
    action: identifier('Only actions that begin with this text, such as `token` or `datasource.query`.'),
    target: identifier('Only actions on this id or slug.'),
  },
  closed,
);
export type AuditFilters = Filters<typeof AuditListQuery>;

export const EnvironmentListQuery = Type.Object(
  { ...page, ...creationTimes, status: Type.Optional(oneOf(['open', 'closed'])) },
  closed,
);
export type EnvironmentFilters = Filters<typeof EnvironmentListQuery>;

const includeWith = (byDefault: 'output' | 'none') =>
  Type.Optional(
    oneOf(['output', 'none'], {
      default: byDefault,
      description:
        'Whether each run comes with its `output`, which may be large. With `none` the output is null; `GET /api/v3/runs/{runId}` ' +
        'always has it.',
    }),
  );

/** The query of the runs of one session. */
export const SessionRunsQuery = Type.Object(
  { ...page, include: includeWith('output'), metadata: MetadataFilter },
  closed,
);
export type SessionRunsFilters = Filters<typeof SessionRunsQuery>;

export const RunListQuery = Type.Object(
  {
    ...page,
    include: includeWith('none'),
    ...creationTimes,
    finishedAfter: instant(
      'Only runs that ended at this time or later. With this or `finishedBefore`, the list has only runs that have ended, in the ' +
        'order of their ends.',
    ),
    finishedBefore: instant('Only runs that ended before this time.'),
    status: Type.Optional(
      Type.Unsafe<RunStatus | readonly RunStatus[]>(
        Type.Array(RunStatusSchema, {
          minItems: 1,
          maxItems: 4,
          uniqueItems: true,
          description: 'Only runs with one of these statuses, separated by commas: `completed,failed`.',
        }),
      ),
    ),
    createdBy: identifier('Only runs that this user has submitted.'),
    kind: Type.Optional(
      oneOf(['notebook', 'agent'], { description: 'Executions of notebooks, or prompts of agents.' }),
    ),
    sessionId: identifier("Only runs of this session. A notebook's session has the notebook's id."),
    environmentId: identifier('Only runs in this environment.'),
    metadata: MetadataFilter,
  },
  closed,
);
export type RunFilters = Filters<typeof RunListQuery>;
