import Type from 'typebox';
import { CellIdSchema } from './notebook.ts';
import { nullable, Timestamp } from './paging.ts';
import { FailureSchema } from './session.ts';

const CacheMode = Type.Union([Type.Literal('default'), Type.Literal('no-cache'), Type.Literal('no-store')], {
  description:
    'Requested cells always run. `default`: fresh dependencies keep their results. `no-cache`: dependencies run again. ' +
    '`no-store`: as `no-cache`, and the output is streamed but not saved with the run.',
});

const CellConfigSchema = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean()),
    hideCode: Type.Optional(Type.Boolean()),
    column: Type.Optional(nullable(Type.Integer({ minimum: 0, maximum: 10_000 }))),
    name: Type.Optional(Type.String({ maxLength: 128, pattern: '^([A-Za-z_][A-Za-z0-9_]*)?$' })),
  },
  { additionalProperties: false, description: 'Saved with the notebook.' },
);

export const ExecutionRequestSchema = Type.Union(
  [
    Type.Object(
      { type: Type.Literal('all'), cacheMode: Type.Optional(CacheMode) },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        type: Type.Literal('cells'),
        cells: Type.Array(
          Type.Object(
            {
              cellId: CellIdSchema,
              code: Type.Optional(
                Type.String({ description: 'Replaces the code of the cell, and is saved.' }),
              ),
              config: Type.Optional(CellConfigSchema),
            },
            { additionalProperties: false },
          ),
          { maxItems: 10_000 },
        ),
        cacheMode: Type.Optional(CacheMode),
      },
      { additionalProperties: false },
    ),
  ],
  { $id: 'ExecutionRequest' },
);

const Shown = Type.Union([
  Type.Object({ mimetype: Type.String(), data: Type.Unknown() }, { additionalProperties: false }),
  Type.Object({ mimetype: Type.String(), assetId: Type.String() }, { additionalProperties: false }),
]);

const OutputPart = Type.Union(
  [
    Type.Object(
      {
        type: Type.Literal('cell-result'),
        cellId: Type.String(),
        status: Type.Union(
          (['success', 'error', 'stopped', 'cancelled', 'interrupted', 'disabled'] as const).map((s) =>
            Type.Literal(s),
          ),
        ),
        outputs: Type.Array(Shown),
        console: Type.Array(
          Type.Object(
            { channel: Type.String(), mimetype: Type.String(), data: Type.Unknown() },
            { additionalProperties: false },
          ),
        ),
        durationMs: nullable(Type.Number()),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      { type: Type.Literal('assistant-message'), text: Type.String() },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        type: Type.Literal('tool-call'),
        name: Type.String(),
        input: Type.Unknown(),
        output: Type.String(),
        status: Type.Union(
          (['completed', 'failed', 'cancelled'] as const).map((status) => Type.Literal(status)),
        ),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      { type: Type.Literal('final-answer'), markdown: Type.String() },
      { additionalProperties: false },
    ),
    Type.Object(
      { type: Type.Literal('warning'), code: Type.String(), message: Type.String() },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        type: Type.Literal('asset'),
        assetId: Type.String(),
        mimetype: Type.String(),
        bytes: Type.Integer(),
        sha256: Type.String(),
      },
      { additionalProperties: false },
    ),
  ],
  { $id: 'OutputPart' },
);

const TokenUsage = Type.Object(
  {
    inputTokens: Type.Integer(),
    cachedInputTokens: Type.Integer({ description: 'Of these, what the provider had kept.' }),
    outputTokens: Type.Integer(),
    reasoningTokens: Type.Integer({ description: 'Of these, what went into reasoning.' }),
  },
  { additionalProperties: false, description: 'As the provider counts; 0 where it does not say.' },
);

export const RunSchema = Type.Object(
  {
    id: Type.String(),
    kind: Type.Union([Type.Literal('notebook'), Type.Literal('agent')]),
    sessionId: Type.String(),
    status: Type.Union(
      (['running', 'completed', 'failed', 'cancelled'] as const).map((status) => Type.Literal(status)),
    ),
    stale: Type.Optional(
      Type.Boolean({ description: 'The server died while this ran; only a cancel ends it.' }),
    ),
    input: Type.Unknown({ description: 'The request as it was accepted.' }),
    output: nullable(
      Type.Object(
        {
          stored: Type.Boolean({ description: 'False for `no-store`: `parts` is then empty.' }),
          parts: Type.Array(OutputPart),
          model: Type.Optional(Type.String({ description: 'Of a prompt: who answered it.' })),
          steps: Type.Optional(Type.Integer({ description: 'Answers of the model that it took.' })),
          usage: Type.Optional(TokenUsage),
        },
        { additionalProperties: false },
      ),
    ),
    error: nullable(FailureSchema),
    createdAt: Timestamp,
    startedAt: nullable(Timestamp),
    finishedAt: nullable(Timestamp),
  },
  { $id: 'Run', additionalProperties: false },
);

export const SubmittedRunSchema = Type.Object(
  { runId: Type.String(), sessionId: Type.String(), status: Type.Literal('running') },
  { $id: 'SubmittedRun', additionalProperties: false },
);
