/** Execution environments, notebook sessions, and code that is run in a session. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

export const FailureSchema = Type.Object(
  {
    code: Type.String({ description: 'A stable code in snake_case.' }),
    message: Type.String(),
    cells: Type.Optional(Type.Array(Type.String(), { description: 'The ids of the cells at fault.' })),
  },
  { $id: 'Failure', ...closed },
);

export const EnvironmentSchema = Type.Object(
  {
    environmentId: Type.String(),
    status: oneOf(['open', 'closed']),
    notebookSessionId: nullable(Type.String()),
    agentSessionIds: Type.Array(Type.String()),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Environment', ...closed },
);
export type Environment = Wire<typeof EnvironmentSchema>;

const SessionModeSchema = oneOf(['edit', 'run']);

export const NotebookSessionSchema = Type.Object(
  {
    sessionId: Type.String({ description: "The notebook's id." }),
    notebookId: Type.String(),
    environmentId: nullable(Type.String()),
    mode: SessionModeSchema,
    status: oneOf(['starting', 'ready', 'busy', 'restoring', 'failed', 'closing', 'closed']),
    phases: Type.Record(Type.String(), Type.Number(), {
      description: 'How many milliseconds each step of the last kernel start took.',
    }),
    currentRunId: nullable(Type.String()),
    cells: Type.Array(
      Type.Object(
        {
          cellId: Type.String(),
          name: Type.String(),
          status: oneOf(['idle', 'queued', 'running', 'stale', 'disabled', 'error']),
          stale: Type.Boolean(),
        },
        closed,
      ),
    ),
    kernel: nullable(
      Type.Record(Type.String(), Type.Unknown(), { description: 'Facts about the running kernel.' }),
    ),
    error: nullable(FailureSchema),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'NotebookSession', ...closed },
);
export type NotebookSession = Wire<typeof NotebookSessionSchema>;

export const OpenNotebookSessionSchema = Type.Object(
  {
    notebookId: Type.String({ minLength: 1, maxLength: 200 }),
    environmentId: Type.String({ minLength: 1, maxLength: 200 }),
    mode: Type.Optional(
      Type.Union([Type.Literal('edit'), Type.Literal('run')], {
        default: 'edit',
        description: 'In `run` mode cells can be executed but not edited.',
      }),
    ),
  },
  closed,
);
export type OpenNotebookSession = Wire<typeof OpenNotebookSessionSchema>;

export const CodeRequestSchema = Type.Object(
  {
    code: Type.String({ description: 'Python; `await` is allowed at the top level.' }),
    tool_call_id: Type.Optional(
      Type.String({ maxLength: 256, description: 'Returned in the `execution-completed` event.' }),
    ),
  },
  closed,
);

export const CodeResultSchema = Type.Object(
  {
    success: Type.Boolean({ description: 'False when the code, a cell it ran, or the kernel failed.' }),
    output: nullable(Type.Object({ mimetype: Type.String(), data: Type.Unknown() }, closed)),
    stdout: Type.String({
      description: 'What the code and the cells it ran printed. The middle of a very long text is left out.',
    }),
    stderr: Type.String(),
    errors: Type.Array(
      Type.Object(
        {
          type: Type.String(),
          message: Type.String(),
          cellId: nullable(Type.String({ description: 'Null for an error of the code itself.' })),
        },
        closed,
      ),
    ),
  },
  { $id: 'CodeResult', ...closed },
);
export type CodeResult = Wire<typeof CodeResultSchema>;
