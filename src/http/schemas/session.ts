import Type from 'typebox';
import { nullable, Timestamp } from './paging.ts';

export const FailureSchema = Type.Object(
  {
    code: Type.String({ description: 'Stable, snake_case.' }),
    message: Type.String(),
    cells: Type.Optional(Type.Array(Type.String(), { description: 'The cells at fault.' })),
  },
  { $id: 'Failure', additionalProperties: false },
);

export const EnvironmentSchema = Type.Object(
  {
    environmentId: Type.String(),
    status: Type.Union([Type.Literal('open'), Type.Literal('closed')]),
    notebookSessionId: nullable(Type.String()),
    agentSessionIds: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Environment', additionalProperties: false },
);

export const SessionStatusSchema = Type.Union(
  (['starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed'] as const).map((status) =>
    Type.Literal(status),
  ),
);

export const NotebookSessionSchema = Type.Object(
  {
    sessionId: Type.String({ description: "The notebook's id." }),
    notebookId: Type.String(),
    environmentId: nullable(Type.String()),
    mode: Type.Union([Type.Literal('edit'), Type.Literal('run')]),
    status: SessionStatusSchema,
    phases: Type.Record(Type.String(), Type.Number(), {
      description: 'Milliseconds of each step of the last kernel start.',
    }),
    currentRunId: nullable(Type.String()),
    cells: Type.Array(
      Type.Object(
        {
          cellId: Type.String(),
          name: Type.String(),
          status: Type.Union(
            (['idle', 'queued', 'running', 'stale', 'disabled', 'error'] as const).map((s) =>
              Type.Literal(s),
            ),
          ),
          stale: Type.Boolean(),
        },
        { additionalProperties: false },
      ),
    ),
    kernel: nullable(
      Type.Record(Type.String(), Type.Unknown(), { description: 'Facts about the running kernel.' }),
    ),
    error: nullable(FailureSchema),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'NotebookSession', additionalProperties: false },
);
