/**
 * What a session's event stream carries: one envelope per event, told apart by `type`. The schemas are the
 * documentation of the streams and the source of the static types.
 */
import Type, { type Static, type TSchema } from 'typebox';

const closed = { additionalProperties: false } as const;

/** An object whose members are told elsewhere: a record as its GET gives it, or one of marimo's own objects. */
const record = (description: string) => Type.Unsafe<object>({ type: 'object', description });

const Output = Type.Object(
  {
    channel: Type.Optional(Type.String({ description: 'stdout, stderr, output, media or marimo-error.' })),
    mimetype: Type.String(),
    data: Type.Optional(Type.Unknown()),
    assetId: Type.Optional(Type.String({ description: 'Instead of `data` when it is large.' })),
  },
  { $id: 'StreamedOutput', ...closed },
);

const RunError = Type.Object(
  { code: Type.String(), message: Type.String(), cells: Type.Optional(Type.Array(Type.Unknown())) },
  { $id: 'StreamedRunError', ...closed },
);

const RegisteredCell = Type.Object(
  {
    cellId: Type.String(),
    name: Type.Union([Type.String(), Type.Null()]),
    code: Type.String(),
    config: record('Per-cell configuration.'),
    version: Type.Integer({ description: 'Counts the changes of its code.' }),
  },
  { $id: 'RegisteredCell', ...closed },
);

const Variable = Type.Object(
  { name: Type.String(), declaredBy: Type.Array(Type.String()), usedBy: Type.Array(Type.String()) },
  { $id: 'StreamedVariable', ...closed },
);

const nothing = Type.Object({}, closed);
const reason = Type.Object({ reason: Type.String() }, closed);

/** On both streams. */
const SESSION_EVENTS = {
  'session.snapshot': record('The session record as GET gives it.'),
  'session.replayed': nothing,
  'session.status': Type.Object({ status: Type.String(), reason: Type.Optional(Type.String()) }, closed),
  'session.resync-required': reason,
  'session.closed': reason,
  'run-status': Type.Object(
    {
      runId: Type.String(),
      status: Type.String(),
      error: Type.Optional(Type.Union([RunError, Type.Null()])),
    },
    closed,
  ),
} as const;

const NOTEBOOK_EVENTS = {
  'cells-registered': Type.Object(
    {
      cells: Type.Array(RegisteredCell),
      order: Type.Array(Type.String({ description: 'All cells, in order.' })),
    },
    closed,
  ),
  'cells-deleted': Type.Object({ cellIds: Type.Array(Type.String()) }, closed),
  'cell-op': Type.Object(
    {
      cellId: Type.String({ description: '`__scratch__` for scratchpad activity.' }),
      status: Type.Optional(Type.String()),
      stale: Type.Optional(Type.Boolean()),
      output: Type.Optional(Type.Union([Output, Type.Null()])),
      console: Type.Optional(Type.Array(Output, { description: 'Entries to append; an empty list clears.' })),
    },
    closed,
  ),
  'console-output': Type.Object(
    {
      cellId: Type.String(),
      channel: Type.Union([Type.Literal('stdout'), Type.Literal('stderr')]),
      text: Type.String(),
    },
    closed,
  ),
  variables: Type.Object({ variables: Type.Array(Variable) }, closed),
  'execution-completed': Type.Object(
    {
      success: Type.Boolean(),
      output: Type.Unknown(),
      stdout: Type.String(),
      stderr: Type.String(),
      errors: Type.Array(Type.Unknown()),
      toolCallId: Type.Optional(Type.String()),
    },
    closed,
  ),
  'notebook.saved': Type.Object({ updatedAt: Type.String({ format: 'date-time' }) }, closed),
} as const;

const AGENT_EVENTS = {
  'agent-entry': record('A complete saved entry of the conversation.'),
  'text-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'reasoning-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'tool-call': Type.Object({ callId: Type.String(), name: Type.String(), input: Type.Unknown() }, closed),
  'tool-result': Type.Object(
    { callId: Type.String(), output: Type.Unknown(), status: Type.String() },
    closed,
  ),
} as const;

const EVENTS = { ...SESSION_EVENTS, ...NOTEBOOK_EVENTS, ...AGENT_EVENTS } as const;

export type EventType = keyof typeof EVENTS;
export type EventData<T extends EventType> = DeepReadonly<Static<(typeof EVENTS)[T]>>;

type DeepReadonly<T> = T extends object ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> } : T;

/** One event of one session. `runId` is there only when a run caused it. */
export type Envelope<T extends EventType = EventType> = T extends EventType
  ? {
      readonly type: T;
      readonly sessionId: string;
      readonly runId?: string;
      readonly data: EventData<T>;
    }
  : never;

const eventSchemas = (events: Readonly<Record<string, TSchema>>) =>
  Object.entries(events).map(([type, data]) =>
    Type.Object(
      { type: Type.Literal(type), sessionId: Type.String(), runId: Type.Optional(Type.String()), data },
      { ...closed, title: type },
    ),
  );

/** The JSON of each `data:` line of a notebook session's stream. */
export const NotebookStreamEvent = Type.Union(eventSchemas({ ...SESSION_EVENTS, ...NOTEBOOK_EVENTS }), {
  $id: 'NotebookStreamEvent',
});

/** The JSON of each `data:` line of an agent session's stream. */
export const AgentStreamEvent = Type.Union(eventSchemas({ ...SESSION_EVENTS, ...AGENT_EVENTS }), {
  $id: 'AgentStreamEvent',
});
