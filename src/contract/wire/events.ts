/** The events of the sessions' streams: one envelope per event, with `type` as discriminator. */
import Type, { type TSchema } from 'typebox';
import {
  AgentEntrySchema,
  AgentSessionSchema,
  AgentSessionStatusSchema,
  OmittedChars,
  ToolStatusSchema,
} from './agent.ts';
import { OutputSchema } from './output.ts';
import { RunStatusSchema } from './run.ts';
import {
  CellStatusSchema,
  CellVersion,
  CodeResultSchema,
  FailureSchema,
  NotebookSessionSchema,
  SessionStatusSchema,
  STARTUP,
} from './session.ts';
import {
  ClosedBy,
  CreatedByIfKnown,
  closed,
  type EventsOf,
  inPascalCase,
  namedData,
  nullable,
  oneOf,
  ResyncReasonSchema,
  Timestamp,
  taggedUnion,
  type Wire,
} from './shape.ts';

const RegisteredCellSchema = Type.Object(
  {
    cellId: Type.String(),
    name: nullable(Type.String()),
    code: Type.String(),
    config: Type.Object(
      {
        disabled: Type.Boolean(),
        hideCode: Type.Boolean(),
        column: nullable(Type.Integer()),
        expandOutput: Type.Boolean(),
      },
      { $id: 'CellSettings', ...closed },
    ),
    version: CellVersion,
  },
  { $id: 'RegisteredCell', ...closed },
);
export type RegisteredCell = Wire<typeof RegisteredCellSchema>;

const VariableSchema = Type.Object(
  { name: Type.String(), declaredBy: Type.Array(Type.String()), usedBy: Type.Array(Type.String()) },
  { $id: 'StreamedVariable', ...closed },
);

/** The events of both kinds of stream. */
const SESSION_EVENTS = {
  'session.replayed': Type.Object({}, closed),
  'session.resync-required': Type.Object({ reason: ResyncReasonSchema }, closed),
  'session.closed': Type.Object({ reason: oneOf(['closed']), closedBy: ClosedBy }, closed),
  'run-status': Type.Object(
    {
      runId: Type.String(),
      status: RunStatusSchema,
      createdBy: CreatedByIfKnown,
      stale: Type.Optional(
        Type.Literal(true, {
          description: 'The server ended during the run. Only cancelling ends such a run.',
        }),
      ),
      error: Type.Optional(nullable(FailureSchema)),
    },
    closed,
  ),
} as const;

const REASON = Type.Optional(Type.String({ description: 'A code in snake_case that gives more detail.' }));

const printedText = (channel: string) =>
  Type.String({
    description: `The text printed to ${channel}, without the middle of a long one; \`console-output\` has all of it.`,
  });

const NOTEBOOK_EVENTS = {
  ...SESSION_EVENTS,
  'session.snapshot': NotebookSessionSchema,
  'session.status': Type.Object({ status: SessionStatusSchema, reason: REASON }, closed),
  'session.startup': Type.Object(STARTUP, closed),
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
      status: Type.Optional(CellStatusSchema),
      stale: Type.Optional(Type.Boolean()),
      output: Type.Optional(nullable(OutputSchema)),
      console: Type.Optional(
        Type.Array(OutputSchema, { description: 'Entries to append; an empty list clears the console.' }),
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
  // Generators make one name of `tool_call_id` and `toolCallId`, so the latter is sent without being declared.
  'execution-completed': Type.Object(
    {
      ...CodeResultSchema.properties,
      output: nullable(OutputSchema),
      stdout: printedText('stdout'),
      stderr: printedText('stderr'),
      media: Type.Array(OutputSchema, { description: 'The figures that were shown while the code ran.' }),
      tool_call_id: Type.Optional(Type.String({ description: 'The value in the request.' })),
    },
    { additionalProperties: true },
  ),
  'notebook.saved': Type.Object({ updatedAt: Timestamp }, closed),
} as const;

const AGENT_EVENTS = {
  ...SESSION_EVENTS,
  'session.snapshot': AgentSessionSchema,
  'session.status': Type.Object({ status: AgentSessionStatusSchema, reason: REASON }, closed),
  'agent-entry': AgentEntrySchema,
  'text-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'reasoning-delta': Type.Object({ entryId: Type.String(), text: Type.String() }, closed),
  'tool-call': Type.Object(
    { callId: Type.String(), name: Type.String(), input: Type.Unknown(), omittedChars: OmittedChars },
    closed,
  ),
  'tool-result': Type.Object(
    { callId: Type.String(), output: Type.String(), status: ToolStatusSchema, omittedChars: OmittedChars },
    closed,
  ),
} as const;

/** The data of each event, as the client gets it. */
export type NotebookEvents = EventsOf<typeof NOTEBOOK_EVENTS>;
export type AgentEvents = EventsOf<typeof AGENT_EVENTS>;

/**
 * The data of each event, as the server sends it. Its types are looser, because some records are stored in the form in which they
 * are served.
 */
type ServedEvents = Omit<
  NotebookEvents & AgentEvents,
  'session.snapshot' | 'session.status' | 'agent-entry' | 'run-status'
> & {
  readonly 'session.snapshot': object;
  readonly 'session.status': { readonly status: string; readonly reason?: string };
  readonly 'agent-entry': object;
  readonly 'run-status': Omit<NotebookEvents['run-status'], 'status'> & { readonly status: string };
};

export type EventType = keyof ServedEvents;
export type EventData<T extends EventType> = ServedEvents[T];

/** One event of one session. `runId` is present only when a run caused it. */
export type EventOf<Events, Marks, Type extends keyof Events = keyof Events> = Type extends keyof Events
  ? {
      readonly type: Type;
      readonly sessionId: string;
      readonly runId?: string;
      readonly data: Events[Type];
    } & Marks
  : never;

/** The members of an event that do not describe its content. */
interface Marks {
  /** When the event happened. An event that reports the current state has the time at which it was sent. */
  readonly time: string;
  /**
   * Whether the event happened while the subscriber was away, after the event that the subscriber has named.
   */
  readonly missed?: true;
  /** In a snapshot: every event that the subscriber has missed follows, marked with `missed`. */
  readonly resumed?: true;
}

/** A published event. The stream adds the time unless it is known. */
export type Envelope<T extends EventType = EventType> = EventOf<
  ServedEvents,
  { readonly time?: string; readonly resumed?: true },
  T
>;
export type NotebookStreamEvent = EventOf<NotebookEvents, Marks>;
export type AgentStreamEvent = EventOf<AgentEvents, Marks>;
export type StreamEvent = NotebookStreamEvent | AgentStreamEvent;

/** Events whose data the two kinds of stream do not have in common. */
const OWN = ['session.snapshot', 'session.status'];

const MISSED = Type.Optional(
  Type.Literal(true, {
    description: 'The event happened while you were disconnected, after the event that you named.',
  }),
);
const RESUMED = Type.Optional(
  Type.Literal(true, {
    description:
      'The events that you have missed follow, marked with `missed`; only then comes the current state.',
  }),
);

/** Returns one schema for each event. An event that both streams have gets the same name in both. */
const eventSchemas = (stream: string, events: Readonly<Record<string, TSchema>>) =>
  Object.entries(events).map(([type, data]) =>
    Type.Object(
      {
        type: Type.Literal(type),
        sessionId: Type.String(),
        runId: Type.Optional(Type.String()),
        time: Timestamp,
        ...(type === 'session.snapshot' ? { resumed: RESUMED } : { missed: MISSED }),
        data: namedData(data, nameOf(stream, type)),
      },
      { ...closed, $id: `${nameOf(stream, type)}Event` },
    ),
  );

function nameOf(stream: string, type: string): string {
  return (OWN.includes(type) ? stream : '') + inPascalCase(type);
}

/** The JSON of each `data:` line of a notebook session's stream. */
export const NotebookStreamEventSchema = taggedUnion('type', eventSchemas('Notebook', NOTEBOOK_EVENTS), {
  $id: 'NotebookStreamEvent',
});

/** The JSON of each `data:` line of an agent session's stream. */
export const AgentStreamEventSchema = taggedUnion('type', eventSchemas('Agent', AGENT_EVENTS), {
  $id: 'AgentStreamEvent',
});
