/** Executions of cells, prompts of agents, and the runs that record both. */
import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { OutputSchema } from './output.ts';
import { CELL_NAME } from './patterns.ts';
import { CellVersion, FailureSchema } from './session.ts';
import {
  CreatedByIfKnown,
  closed,
  MetadataSchema,
  nullable,
  oneOf,
  optionalOrNull,
  ShownMetadata,
  TimeoutSchema,
  Timestamp,
  taggedUnion,
  type Wire,
} from './shape.ts';

const CacheModeSchema = oneOf(['default', 'no-cache', 'no-store'], {
  description:
    'The requested cells always run. `default`: only dependencies that are stale run again. ' +
    '`no-cache`: dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not ' +
    'saved with the run.',
});
export type CacheMode = Wire<typeof CacheModeSchema>;

const StructuralErrorsSchema = oneOf(['refuse', 'skip'], {
  description:
    'Treatment of structural errors in the requested cells or the cells that they depend on: names that ' +
    'several cells define, and cycles. `refuse`, the default: 409, and nothing runs. `skip`: the other ' +
    'cells run; cells with an error, and cells that need them, end as `error`, with the reason as their ' +
    'output.',
});

const CellConfigSchema = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean()),
    hideCode: Type.Optional(Type.Boolean()),
    column: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 10_000 }))),
    name: optionalOrNull(Type.String({ maxLength: 128, pattern: CELL_NAME })),
    expandOutput: Type.Optional(Type.Boolean()),
  },
  {
    $id: 'CellConfig',
    ...closed,
    description: "Changes the cell's settings, which are saved with the notebook.",
  },
);
export type CellChanges = Wire<typeof CellConfigSchema>;

const ExpectedUpdatedAt = optionalOrNull(
  Type.String({
    format: 'date-time',
    maxLength: 64,
    description:
      'The `updatedAt` of your last read of the notebook. When the notebook has changed since, nothing is ' +
      'saved and nothing runs: 409 `stale_update`, with the present `updatedAt`. Omitted: the request ' +
      'replaces the code of its cells in any case.',
  }),
);

export const ExecutionRequestSchema = taggedUnion(
  'type',
  [
    Type.Object(
      {
        type: Type.Literal('all'),
        cacheMode: Type.Optional(CacheModeSchema),
        structuralErrors: Type.Optional(StructuralErrorsSchema),
        expectedUpdatedAt: ExpectedUpdatedAt,
        timeoutS: TimeoutSchema,
        metadata: Type.Optional(MetadataSchema),
      },
      { $id: 'ExecuteAll', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('cells'),
        cells: Type.Array(
          Type.Object(
            {
              cellId: CellIdSchema,
              version: optionalOrNull(CellVersion),
              code: optionalOrNull(
                Type.String({ description: 'New code of the cell, which is saved with the notebook.' }),
              ),
              config: optionalOrNull(CellConfigSchema),
            },
            { $id: 'CellExecution', ...closed },
          ),
          { maxItems: 10_000 },
        ),
        cacheMode: Type.Optional(CacheModeSchema),
        structuralErrors: Type.Optional(StructuralErrorsSchema),
        expectedUpdatedAt: ExpectedUpdatedAt,
        timeoutS: TimeoutSchema,
        metadata: Type.Optional(MetadataSchema),
      },
      { $id: 'ExecuteCells', ...closed },
    ),
  ],
  {
    $id: 'ExecutionRequest',
    examples: [
      { type: 'all' },
      { type: 'cells', cells: [{ cellId: 'total', code: 'total = 6' }], cacheMode: 'no-cache' },
    ],
  },
);
export type ExecutionRequest = Wire<typeof ExecutionRequestSchema>;

export const PromptRequestSchema = Type.Object(
  {
    prompt: Type.String({ minLength: 1, maxLength: 500_000 }),
    timeoutS: TimeoutSchema,
    metadata: Type.Optional(MetadataSchema),
  },
  { $id: 'PromptRequest', ...closed, examples: [{ prompt: 'Plot the sales of last month.' }] },
);

export type PromptRequest = Wire<typeof PromptRequestSchema>;

export const CellResultSchema = Type.Object(
  {
    type: Type.Literal('cell-result'),
    cellId: Type.String(),
    status: oneOf(['success', 'error', 'stopped', 'cancelled', 'interrupted', 'disabled']),
    outputs: Type.Array(OutputSchema),
    console: Type.Array(OutputSchema, {
      description:
        'The text that the cell printed (`stdout`, `stderr`), and the figures that it showed (`media`), ' +
        'in order. A large figure is an asset.',
    }),
    durationMs: nullable(Type.Number()),
  },
  { $id: 'CellResult', ...closed },
);
export type CellResult = Wire<typeof CellResultSchema>;

const OutputPartSchema = taggedUnion(
  'type',
  [
    CellResultSchema,
    Type.Object(
      { type: Type.Literal('assistant-message'), text: Type.String() },
      { $id: 'AssistantMessage', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('tool-call'),
        name: Type.String(),
        input: Type.Unknown(),
        output: Type.String(),
        status: oneOf(['completed', 'failed', 'cancelled']),
      },
      { $id: 'ToolCall', ...closed },
    ),
    Type.Object(
      { type: Type.Literal('final-answer'), markdown: Type.String() },
      { $id: 'FinalAnswer', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('warning'),
        code: Type.String({
          description:
            'A stable code: `console_truncated`, `figures_left_out`, `output_lost`, `missing_packages` or ' +
            '`history_compacted`. Later versions may add codes.',
        }),
        message: Type.String(),
        cellId: Type.Optional(
          Type.String({
            description: 'The cell that the warning is about. Absent for a warning about no cell.',
          }),
        ),
      },
      { $id: 'RunWarning', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('asset'),
        assetId: Type.String(),
        mimetype: Type.String(),
        bytes: Type.Integer(),
        sha256: Type.String(),
      },
      { $id: 'RunAsset', ...closed },
    ),
  ],
  { $id: 'OutputPart' },
);
export type OutputPart = Wire<typeof OutputPartSchema>;

const TokenUsageSchema = Type.Object(
  {
    inputTokens: Type.Integer(),
    cachedInputTokens: Type.Integer({ description: 'How many of the input tokens the provider had cached.' }),
    cacheWriteInputTokens: Type.Optional(
      Type.Integer({ description: "How many of the input tokens were written to the provider's cache." }),
    ),
    outputTokens: Type.Integer(),
    reasoningTokens: Type.Integer({ description: 'How many of the output tokens were spent on reasoning.' }),
    estimatedCalls: Type.Optional(
      Type.Integer({
        description:
          'How many of the calls have estimated figures, because the provider reported no figures or the answer broke off.',
      }),
    ),
  },
  {
    $id: 'TokenUsage',
    ...closed,
    description:
      'The tokens of all calls of the model: the counts that the provider reports, also for answers that broke off. Without ' +
      'a report, one token counts for every four bytes of the request and of the answer.',
  },
);

export type TokenUsage = Wire<typeof TokenUsageSchema>;

export const RunStatusSchema = oneOf(['running', 'completed', 'failed', 'cancelled'], { $id: 'RunStatus' });
export type RunStatus = Wire<typeof RunStatusSchema>;
/** How a run can end. */
export type TerminalStatus = Exclude<RunStatus, 'running'>;

const runMembers = {
  id: Type.String(),
  sessionId: Type.String(),
  status: RunStatusSchema,
  stale: Type.Optional(
    Type.Boolean({
      description: 'True when the server ended during the run. Only cancelling ends such a run.',
    }),
  ),
  output: nullable(
    Type.Object(
      {
        stored: Type.Boolean({
          description:
            'False for `no-store`, and once the output was deleted because of its age (`TROUPE_KEEP_OUTPUTS_DAYS`). `parts` is empty then.',
        }),
        parts: Type.Array(OutputPartSchema),
        model: Type.Optional(Type.String({ description: 'The model that answered the prompt.' })),
        steps: Type.Optional(Type.Integer({ description: 'How many times the model was asked.' })),
        usage: Type.Optional(TokenUsageSchema),
      },
      { $id: 'RunOutput', ...closed },
    ),
  ),
  outputOmitted: Type.Optional(
    Type.Boolean({
      description:
        'True in lists that leave outputs out (`include`): `output` is then always null. Otherwise ' +
        '`output` is null while the run is running, and in a run that ended without output. In a `stale` ' +
        'run it contains the text that its cells had printed.',
    }),
  ),
  error: nullable(FailureSchema),
  metadata: ShownMetadata,
  createdBy: CreatedByIfKnown,
  createdAt: Timestamp,
  startedAt: nullable(Timestamp),
  finishedAt: nullable(Timestamp),
};

/** An execution of cells. `input` is the accepted request, in both kinds of runs. */
export const NotebookRunSchema = Type.Object(
  { kind: Type.Literal('notebook'), input: ExecutionRequestSchema, ...runMembers },
  { $id: 'NotebookRun', ...closed },
);
export type NotebookRun = Wire<typeof NotebookRunSchema>;

/** A prompt of a conversation. */
export const AgentRunSchema = Type.Object(
  { kind: Type.Literal('agent'), input: PromptRequestSchema, ...runMembers },
  { $id: 'AgentRun', ...closed },
);
export type AgentRun = Wire<typeof AgentRunSchema>;

export const RunSchema = taggedUnion('kind', [NotebookRunSchema, AgentRunSchema], { $id: 'Run' });
export type Run = NotebookRun | AgentRun;
export type RunKind = Run['kind'];
export type RunOutput = NonNullable<Run['output']>;

/** The longest time that a request may wait for the end of a run. */
export const MAX_WAIT_S = 300;

/** The query of requests that can wait for the end of a run. */
export const WaitQuery = Type.Object(
  {
    wait: Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_S,
      default: 0,
      description:
        'How many seconds to wait for the end of the run. Nothing is sent during the wait: behind a ' +
        'proxy, choose less than its timeout.',
    }),
  },
  closed,
);

/** The members that the reply to a submission has in addition to the members of the run. */
const submission = {
  runId: Type.String({ description: 'The `id` of the run.' }),
  lastEventId: Type.String({
    description:
      'Open an event stream of the session with this id as `Last-Event-ID` to get all events of the run, ' +
      'as long as the server keeps them.',
  }),
};

export const SubmittedNotebookRunSchema = Type.Object(
  { ...submission, ...NotebookRunSchema.properties },
  { $id: 'SubmittedNotebookRun', ...closed },
);
export type SubmittedNotebookRun = Wire<typeof SubmittedNotebookRunSchema>;

export const SubmittedAgentRunSchema = Type.Object(
  { ...submission, ...AgentRunSchema.properties },
  { $id: 'SubmittedAgentRun', ...closed },
);
export type SubmittedAgentRun = Wire<typeof SubmittedAgentRunSchema>;

export const CancellationSchema = Type.Object(
  {
    runId: Type.String(),
    status: Type.Literal('cancelling', {
      description: 'A value of this response only: the run itself is `running` until it has ended.',
    }),
  },
  { $id: 'CancellationAccepted', ...closed },
);
export type Cancellation = Wire<typeof CancellationSchema>;

export const RunCancellationsSchema = Type.Object(
  {
    runIds: Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
      minItems: 1,
      maxItems: 100,
      uniqueItems: true,
    }),
  },
  { $id: 'RunCancellations', ...closed, examples: [{ runIds: ['run_01k6gq0000aaaaaaaaaaaaaaaa'] }] },
);

export const RunCancellationResultSchema = Type.Object(
  {
    runId: Type.String(),
    status: nullable(Type.Literal('cancelling', { description: 'The cancellation has begun.' })),
    error: nullable(
      Type.Object(
        {
          code: Type.String({
            description: 'The code of the error with which the cancellation was refused.',
          }),
          message: Type.String(),
        },
        { $id: 'RunCancellationError', ...closed },
      ),
    ),
  },
  { $id: 'RunCancellationResult', ...closed },
);
export type RunCancellationResult = Wire<typeof RunCancellationResultSchema>;
