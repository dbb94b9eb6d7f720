/** Executions of cells, prompts of agents, and the runs that record both. */
import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { FailureSchema } from './session.ts';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

const CacheModeSchema = oneOf(['default', 'no-cache', 'no-store'], {
  description:
    'The requested cells always run. `default`: dependencies that are not stale keep their results. `no-cache`: ' +
    'dependencies run again. `no-store`: as `no-cache`, and the output is streamed but not saved with the run.',
});
export type CacheMode = Wire<typeof CacheModeSchema>;

const CellConfigSchema = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean()),
    hideCode: Type.Optional(Type.Boolean()),
    column: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 10_000 }))),
    name: Type.Optional(Type.String({ maxLength: 128, pattern: '^([A-Za-z_][A-Za-z0-9_]*)?$' })),
  },
  { ...closed, description: "Changes the cell's settings. They are saved with the notebook." },
);

export const ExecutionRequestSchema = Type.Union(
  [
    Type.Object({ type: Type.Literal('all'), cacheMode: Type.Optional(CacheModeSchema) }, closed),
    Type.Object(
      {
        type: Type.Literal('cells'),
        cells: Type.Array(
          Type.Object(
            {
              cellId: CellIdSchema,
              code: Type.Optional(
                Type.String({ description: "Replaces the cell's code, and is saved with the notebook." }),
              ),
              config: Type.Optional(CellConfigSchema),
            },
            closed,
          ),
          { maxItems: 10_000 },
        ),
        cacheMode: Type.Optional(CacheModeSchema),
      },
      closed,
    ),
  ],
  { $id: 'ExecutionRequest' },
);
export type ExecutionRequest = Wire<typeof ExecutionRequestSchema>;

export const PromptRequestSchema = Type.Object(
  { prompt: Type.String({ minLength: 1, maxLength: 500_000 }) },
  closed,
);

const CellResultSchema = Type.Object(
  {
    type: Type.Literal('cell-result'),
    cellId: Type.String(),
    status: oneOf(['success', 'error', 'stopped', 'cancelled', 'interrupted', 'disabled']),
    outputs: Type.Array(
      Type.Union([
        Type.Object({ mimetype: Type.String(), data: Type.Unknown() }, closed),
        Type.Object({ mimetype: Type.String(), assetId: Type.String() }, closed),
      ]),
    ),
    console: Type.Array(
      Type.Object({ channel: Type.String(), mimetype: Type.String(), data: Type.Unknown() }, closed),
    ),
    durationMs: nullable(Type.Number()),
  },
  closed,
);
export type CellResult = Wire<typeof CellResultSchema>;

const OutputPartSchema = Type.Union(
  [
    CellResultSchema,
    Type.Object({ type: Type.Literal('assistant-message'), text: Type.String() }, closed),
    Type.Object(
      {
        type: Type.Literal('tool-call'),
        name: Type.String(),
        input: Type.Unknown(),
        output: Type.String(),
        status: oneOf(['completed', 'failed', 'cancelled']),
      },
      closed,
    ),
    Type.Object({ type: Type.Literal('final-answer'), markdown: Type.String() }, closed),
    Type.Object({ type: Type.Literal('warning'), code: Type.String(), message: Type.String() }, closed),
    Type.Object(
      {
        type: Type.Literal('asset'),
        assetId: Type.String(),
        mimetype: Type.String(),
        bytes: Type.Integer(),
        sha256: Type.String(),
      },
      closed,
    ),
  ],
  { $id: 'OutputPart' },
);
export type OutputPart = Wire<typeof OutputPartSchema>;

const TokenUsageSchema = Type.Object(
  {
    inputTokens: Type.Integer(),
    cachedInputTokens: Type.Integer({ description: 'How many of the input tokens the provider had cached.' }),
    outputTokens: Type.Integer(),
    reasoningTokens: Type.Integer({ description: 'How many of the output tokens were spent on reasoning.' }),
  },
  { ...closed, description: "The provider's own counts; 0 where it gives none." },
);

const RunStatusSchema = oneOf(['running', 'completed', 'failed', 'cancelled']);
export type RunStatus = Wire<typeof RunStatusSchema>;

export const RunSchema = Type.Object(
  {
    id: Type.String(),
    kind: oneOf(['notebook', 'agent']),
    sessionId: Type.String(),
    status: RunStatusSchema,
    stale: Type.Optional(
      Type.Boolean({ description: 'True when the server died during the run. Only cancelling ends it.' }),
    ),
    input: Type.Unknown({ description: 'The request as it was accepted.' }),
    output: nullable(
      Type.Object(
        {
          stored: Type.Boolean({ description: 'False for `no-store`: `parts` is then empty.' }),
          parts: Type.Array(OutputPartSchema),
          model: Type.Optional(Type.String({ description: 'The model that answered the prompt.' })),
          steps: Type.Optional(Type.Integer({ description: 'How many times the model was asked.' })),
          usage: Type.Optional(TokenUsageSchema),
        },
        closed,
      ),
    ),
    error: nullable(FailureSchema),
    createdAt: Timestamp,
    startedAt: nullable(Timestamp),
    finishedAt: nullable(Timestamp),
  },
  { $id: 'Run', ...closed },
);

type RunOf<Kind, Input> = Omit<Wire<typeof RunSchema>, 'kind' | 'input'> & {
  readonly kind: Kind;
  /** The request as it was accepted. */
  readonly input: Input;
};
export type NotebookRun = RunOf<'notebook', ExecutionRequest>;
export type AgentRun = RunOf<'agent', Wire<typeof PromptRequestSchema>>;
export type Run = NotebookRun | AgentRun;

export const SubmittedRunSchema = Type.Object(
  { runId: Type.String(), sessionId: Type.String(), status: Type.Literal('running') },
  { $id: 'SubmittedRun', ...closed },
);
export type SubmittedRun = Wire<typeof SubmittedRunSchema>;

export const CancellationSchema = Type.Object(
  { runId: Type.String(), status: Type.Literal('cancelling') },
  { $id: 'CancellationAccepted', ...closed },
);
export type Cancellation = Wire<typeof CancellationSchema>;
