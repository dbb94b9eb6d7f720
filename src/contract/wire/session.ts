/** Execution environments, notebook sessions, and code that is run in a session. */
import Type from 'typebox';
import { descriptionOfOutput } from './output.ts';
import { WITHOUT_NUL } from './patterns.ts';
import {
  ClosedBy,
  closed,
  MetadataSchema,
  mapOf,
  NotebookUrlSchema,
  nullable,
  oneOf,
  optionalOrNull,
  ShownMetadata,
  TimeoutSchema,
  Timestamp,
  type Wire,
} from './shape.ts';

/**
 * The OpenAPI document lists the codes in its place. The type is not an enum, because clients must tolerate codes that later
 * versions add.
 */
const FailureCodeSchema = Type.String({ $id: 'FailureCode' });

export const FailureSchema = Type.Object(
  {
    code: FailureCodeSchema,
    message: Type.String({ description: 'One sentence for people.' }),
    cells: Type.Optional(Type.Array(Type.String(), { description: 'The ids of the cells at fault.' })),
  },
  { $id: 'Failure', ...closed },
);

export const EnvironmentSchema = Type.Object(
  {
    environmentId: Type.String(),
    status: oneOf(['open', 'closed']),
    notebookSessionId: nullable(Type.String()),
    agentSessionIds: Type.Array(Type.String(), {
      description:
        'The open conversations in the environment that you can read. Other open conversations keep the environment from being closed, too.',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Environment', ...closed },
);
export type Environment = Wire<typeof EnvironmentSchema>;

export const ArgumentsSchema = Type.Array(Type.String({ maxLength: 8192, pattern: WITHOUT_NUL }), {
  maxItems: 256,
  description:
    'Command-line arguments, as after `--` in `marimo run notebook.py --`: `["--month=3"]` is `{"month": 3}` in ' +
    '`mo.cli_args()`. The list is also `sys.argv[1:]`.',
});

export const SessionModeSchema = oneOf(['edit', 'run']);
export type SessionMode = Wire<typeof SessionModeSchema>;

export const SessionStatusSchema = oneOf([
  'starting',
  'ready',
  'busy',
  'restoring',
  'failed',
  'closing',
  'closed',
]);
export type SessionStatus = Wire<typeof SessionStatusSchema>;

/** The state that a cell shows. */
export const CellStatusSchema = oneOf(['idle', 'queued', 'running', 'stale', 'disabled', 'error']);
export type ShownStatus = Wire<typeof CellStatusSchema>;

/** The version of a cell in an open notebook. */
export const CellVersion = Type.Integer({
  format: 'int64',
  description:
    'Grows with every change of the code, the name or the settings of the cell. A change that names the version is refused if ' +
    'the cell has another version.',
});

/** The step for which the start of a kernel waits. */
export const STARTUP = {
  phase: Type.String({
    description: '`packages`: the packages of the notebook and its workspace are installed.',
  }),
  text: Type.String({ description: 'The current step, for people.' }),
};
const StartupSchema = Type.Object(STARTUP, { $id: 'Startup', ...closed });
export type Startup = Wire<typeof StartupSchema>;

export const NotebookSessionSchema = Type.Object(
  {
    sessionId: Type.String({ description: "The notebook's id." }),
    notebookId: Type.String(),
    environmentId: nullable(Type.String()),
    mode: SessionModeSchema,
    arguments: ArgumentsSchema,
    metadata: ShownMetadata,
    ttlS: nullable(Type.Integer({ description: 'How many seconds after its opening the session ends.' })),
    idleTimeoutS: nullable(
      Type.Integer({ description: 'How many seconds after its last use the session ends.' }),
    ),
    expiresAt: nullable(
      Type.String({
        format: 'date-time',
        description:
          'When the session ends because of `ttlS`. RFC 3339, in UTC, with milliseconds. Null without `ttlS`, and once the session is closed.',
      }),
    ),
    status: SessionStatusSchema,
    startup: nullable(StartupSchema),
    phases: mapOf(Type.Number(), {
      description: 'The duration of each step of the last kernel start, in milliseconds.',
    }),
    currentRunId: nullable(Type.String()),
    cells: Type.Array(
      Type.Object(
        {
          cellId: Type.String(),
          name: Type.String(),
          status: CellStatusSchema,
          stale: Type.Boolean(),
          version: CellVersion,
        },
        { $id: 'SessionCell', ...closed },
      ),
    ),
    kernel: nullable(
      mapOf(Type.Unknown(), {
        description:
          'Facts about the running kernel. `notes` lists its differences from the requirements of the notebook, such as another version of marimo.',
      }),
    ),
    error: nullable(FailureSchema),
    closedBy: ClosedBy,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    url: NotebookUrlSchema,
  },
  { $id: 'NotebookSession', ...closed },
);
export type NotebookSession = Wire<typeof NotebookSessionSchema>;

const PAGE_ACCESSES = ['edit', 'interact', 'view'] as const;

export const OpenBrowserPageSchema = Type.Object(
  {
    access: optionalOrNull(
      oneOf(PAGE_ACCESSES, {
        description:
          'The rights of the page: to change the notebook, only to use its UI elements, or only to look. ' +
          'By default, and at most, the page has the rights of your role: a viewer can only look.',
      }),
    ),
  },
  { $id: 'OpenBrowserPage', ...closed, examples: [{ access: 'edit' }] },
);

export type OpenBrowserPage = Wire<typeof OpenBrowserPageSchema>;

export const BrowserPageSchema = Type.Object(
  {
    url: Type.String({
      description:
        'The path of the page. It can be opened in a browser once, within a minute. The browser that opens it acts in your name.',
    }),
    access: oneOf(PAGE_ACCESSES),
    expiresAt: Timestamp,
  },
  { $id: 'BrowserPage', ...closed },
);
export type BrowserPage = Wire<typeof BrowserPageSchema>;

/** The longest lifetime that a session may be given, in seconds: 30 days. */
const MAX_LIFETIME_S = 30 * 86_400;

export const OpenNotebookSessionSchema = Type.Object(
  {
    notebookId: Type.String({ minLength: 1, maxLength: 200 }),
    environmentId: Type.String({ minLength: 1, maxLength: 200 }),
    mode: optionalOrNull(
      oneOf(['edit', 'run'], {
        default: 'edit',
        description: 'In `run` mode cells can be executed but not edited. Null means the default.',
      }),
    ),
    arguments: Type.Optional(ArgumentsSchema),
    metadata: Type.Optional(MetadataSchema),
    ttlS: optionalOrNull(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LIFETIME_S,
        description:
          'How many seconds after its opening the session ends, even if it is in use. The session is closed as by ' +
          'DELETE. Its environment is closed, too, unless other sessions are attached to the environment. Omitted: the ' +
          'session stays open until it is closed.',
      }),
    ),
    idleTimeoutS: optionalOrNull(
      Type.Integer({
        minimum: 1,
        maximum: MAX_LIFETIME_S,
        description:
          'How many seconds after its last use the session ends, as by `ttlS`. Uses are requests that ' +
          'read or use the session, followers of its stream (except with `observe`), and work in it. ' +
          'Listing sessions is not a use. Omitted: no such limit.',
      }),
    ),
  },
  {
    $id: 'OpenNotebookSession',
    ...closed,
    examples: [
      { notebookId: 'nb_01k6gq0000aaaaaaaaaaaaaaaa', environmentId: 'env_01k6gq0000bbbbbbbbbbbbbbbb' },
    ],
  },
);
export type OpenNotebookSession = Wire<typeof OpenNotebookSessionSchema>;

export const SessionInterruptionSchema = Type.Object(
  {
    sessionId: Type.String(),
    status: oneOf(['interrupting', 'idle'], {
      description:
        'The outcome, not a status of the session. `interrupting`: the interruption has begun. `idle`: nothing ran.',
    }),
    runId: nullable(
      Type.String({ description: 'The run that is cancelled. Null when nothing ran, and for a code call.' }),
    ),
  },
  { $id: 'SessionInterruption', ...closed },
);
export type SessionInterruption = Wire<typeof SessionInterruptionSchema>;

export const CodeRequestSchema = Type.Object(
  {
    code: Type.String({ description: 'Python; `await` is allowed at the top level.' }),
    keep: Type.Optional(
      Type.Boolean({
        description:
          'Whether the names that the code defines are kept for later calls with `keep`. These calls may ' +
          'redefine the names, which end with the kernel. A cell that later defines the same name replaces the ' +
          'value. Default: false.',
      }),
    ),
    timeoutS: TimeoutSchema,
    tool_call_id: optionalOrNull(
      Type.String({ maxLength: 256, description: 'Returned in the `execution-completed` event.' }),
    ),
  },
  { $id: 'CodeRequest', ...closed, examples: [{ code: '1 + 1' }] },
);

export const CodeResultSchema = Type.Object(
  {
    success: Type.Boolean({
      description: 'False when the code, a cell that the code ran, or the kernel failed.',
    }),
    output: nullable(
      Type.Object(
        { mimetype: Type.String(), data: Type.Unknown(), ...descriptionOfOutput },
        { $id: 'CodeOutput', ...closed },
      ),
    ),
    stdout: Type.String({
      description:
        'The text that the code, and the cells that it ran, have printed. The middle of a very long text is left out.',
    }),
    stderr: Type.String(),
    media: Type.Array(
      Type.Object({ mimetype: Type.String(), data: Type.Unknown() }, { $id: 'CodeFigure', ...closed }),
      {
        description:
          'The figures that the code, and the cells that it ran, have shown, such as those of `plt.show()`: at most ' +
          '100, with 16 MiB together.',
      },
    ),
    errors: Type.Array(
      Type.Object(
        {
          type: Type.String(),
          message: Type.String(),
          cellId: nullable(Type.String({ description: 'Null for an error of the code itself.' })),
        },
        { $id: 'CodeError', ...closed },
      ),
    ),
  },
  { $id: 'CodeResult', ...closed },
);
export type CodeResult = Wire<typeof CodeResultSchema>;
export type CodeError = CodeResult['errors'][number];
