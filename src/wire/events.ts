/** What the event streams of sessions carry: one envelope per event, which its `type` tells apart. */
import Type, { type TSchema } from 'typebox';
import type { AgentEntry, AgentSession } from './agent.ts';
import type { RunStatus } from './run.ts';
import type { NotebookSession } from './session.ts';
import { closed, nullable, oneOf, type Wire } from './shape.ts';

/** An object whose members are described elsewhere: a record that a GET returns, or one of marimo's own objects. */
const record = <T extends object>(description: string) => Type.Unsafe<T>({ type: 'object', description });

const OutputSchema = Type.Object(
  {
    channel: Type.Optional(Type.String({ description: 'stdout, stderr, output, media or marimo-error.' })),
    mimetype: Type.String(),
    data: Type.Optional(Type.Unknown()),
    assetId: Type.Optional(Type.String({ description: 'Instead of `data` when it is large.' })),
  },
  { $id: 'StreamedOutput', ...closed },
);
export type StreamedOutput = Wire<typeof OutputSchema>;

const RunErrorSchema = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    cells: Type.Optional(Type.Array(Type.Unsafe<string>({}))),
  },
  { $id: 'StreamedRunError', ...closed },
);

const RegisteredCellSchema = Type.Object(
  {
    cellId: Type.String(),
    name: nullable(Type.String()),
    code: Type.String(),
    config: record<Record<string, unknown>>('The configuration of the cell.'),
    version: Type.Integer({ description: 'Increases with every change of its code.' }),
  },
  { $id: 'RegisteredCell', ...closed },
);
export type RegisteredCell = Wire<typeof RegisteredCellSchema>;

const VariableSchema = Type.Object(
  { name: Type.String(), declaredBy: Type.Array(Type.String()), usedBy: Type.Array(Type.String()) },
  { $id: 'StreamedVariable', ...closed },
);

const nothing = Type.Object({}, closed);
const reason = Type.Object({ reason: Type.String() }, closed);

/** The events of both kinds of stream. */
const SESSION_EVENTS = {
  'session.replayed': nothing,
  'session.status': Type.Object({ status: Type.String(), reason: Type.Optional(Type.String()) }, closed),
  'session.resync-required': reason,
  'session.closed': reason,
  'run-status': Type.Object(
    {
      runId: Type.String(),
      status: Type.Unsafe<RunStatus>(Type.String()),
      error: Type.Optional(nullable(RunErrorSchema)),
    },
    closed,
  ),
} as const;

const SNAPSHOT = 'The session as GET returns it.';

const NOTEBOOK_EVENTS = {
  ...SESSION_EVENTS,
  'session.snapshot': record<NotebookSession>(SNAPSHOT),
  'cells-registered': Type.Object(
    {
      cells: Type.Array(RegisteredCellSchema),
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
      output: Type.Optional(nullable(OutputSchema)),
      console: Type.Optional(
        Type.Array(OutputSchema, { description: 'Entries to append; an empty list clears.' }),
      ),
    },
    closed,
  ),
  'console-output': Type.Object(
    {
      cellId: Type.String(),
      channel: oneOf(['stdout', 'stderr']),
      text: Type.String(),
    },
    closed,
  ),
  variables: Type.Object({ variables: Type.Array(VariableSchema) }, closed),
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
  ...SESSION_EVENTS,
  'session.snapshot': record<AgentSession>(SNAPSHOT),
  'agent-entry': record<AgentEntry>('A complete saved entry of the conversation.'),
  'text-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'reasoning-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'tool-call': Type.Object({ callId: Type.String(), name: Type.String(), input: Type.Unknown() }, closed),
  'tool-result': Type.Object(
    { callId: Type.String(), output: Type.Unknown(), status: Type.String() },
    closed,
  ),
} as const;

/** The data of each event, as the client gets it. */
export type NotebookEvents = {
  readonly [T in keyof typeof NOTEBOOK_EVENTS]: Wire<(typeof NOTEBOOK_EVENTS)[T]>;
};
export type AgentEvents = { readonly [T in keyof typeof AGENT_EVENTS]: Wire<(typeof AGENT_EVENTS)[T]> };

/** The data of each event, as the server sends it: what is stored in the form in which it is served has looser types. */
type ServedEvents = Omit<NotebookEvents & AgentEvents, 'session.snapshot' | 'agent-entry' | 'run-status'> & {
  readonly 'session.snapshot': object;
  readonly 'agent-entry': object;
  readonly 'run-status': Omit<NotebookEvents['run-status'], 'status'> & { readonly status: string };
};

export type EventType = keyof ServedEvents;
export type EventData<T extends EventType> = ServedEvents[T];

/** One event of one session. `runId` is present only when a run caused it. */
export type EventOf<Events, Type extends keyof Events = keyof Events> = Type extends keyof Events
  ? {
      readonly type: Type;
      readonly sessionId: string;
      readonly runId?: string;
      readonly data: Events[Type];
    }
  : never;

export type Envelope<T extends EventType = EventType> = EventOf<ServedEvents, T>;
export type NotebookStreamEvent = EventOf<NotebookEvents>;
export type AgentStreamEvent = EventOf<AgentEvents>;
export type StreamEvent = NotebookStreamEvent | AgentStreamEvent;

const eventSchemas = (events: Readonly<Record<string, TSchema>>) =>
  Object.entries(events).map(([type, data]) =>
    Type.Object(
      { type: Type.Literal(type), sessionId: Type.String(), runId: Type.Optional(Type.String()), data },
      { ...closed, title: type },
    ),
  );

/** The JSON of each `data:` line of a notebook session's stream. */
export const NotebookStreamEventSchema = Type.Union(eventSchemas(NOTEBOOK_EVENTS), {
  $id: 'NotebookStreamEvent',
});

/** The JSON of each `data:` line of an agent session's stream. */
export const AgentStreamEventSchema = Type.Union(eventSchemas(AGENT_EVENTS), {
  $id: 'AgentStreamEvent',
});
