/** Conversations with agents, their entries, and with whom they are shared. */
import Type from 'typebox';
import { UserIdSchema } from './identity.ts';
import { DatasourceSlugsSchema } from './notebook.ts';
import {
  ClosedBy,
  CreatedBy,
  closed,
  listSchema,
  nullable,
  oneOf,
  optionalOrNull,
  Timestamp,
  taggedUnion,
  type Wire,
} from './shape.ts';

/** How a tool call ended. */
export const ToolStatusSchema = oneOf(['completed', 'failed', 'cancelled']);
export type ToolStatus = Wire<typeof ToolStatusSchema>;

/** The count of a part, or of a call in an event, that an event does not have in whole. */
export const OmittedChars = Type.Optional(
  Type.Integer({
    minimum: 1,
    description:
      'Only in events, which have only the beginning of a long text: the number of characters that are left out. Of an `input`, the ' +
      'beginning of its JSON is sent. `GET …/entries` has the whole text.',
  }),
);

const EntryPartSchema = taggedUnion(
  'type',
  [
    Type.Object(
      {
        type: Type.Literal('text'),
        text: Type.String({ description: 'Markdown.' }),
        omittedChars: OmittedChars,
      },
      { $id: 'TextPart', ...closed },
    ),
    Type.Object(
      { type: Type.Literal('reasoning'), text: Type.String(), omittedChars: OmittedChars },
      { $id: 'ReasoningPart', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('tool-call'),
        callId: Type.String(),
        name: Type.String(),
        input: Type.Unknown({ description: 'An object, or text when the model did not write valid JSON.' }),
        omittedChars: OmittedChars,
      },
      { $id: 'ToolCallPart', ...closed },
    ),
    Type.Object(
      {
        type: Type.Literal('tool-result'),
        callId: Type.String(),
        name: Type.String(),
        status: ToolStatusSchema,
        output: Type.String(),
        omittedChars: OmittedChars,
        images: Type.Array(
          Type.Object(
            {
              mimetype: Type.String(),
              assetId: Type.String({ description: 'The id of an asset of the run.' }),
            },
            { $id: 'ToolImage', ...closed },
          ),
        ),
        touchedCells: Type.Optional(
          Type.Array(Type.String(), {
            description:
              'The ids of the cells that the call created, changed, deleted or had to run: the ' +
              'first 100. Absent when there are none, or when the call was interrupted before they were ' +
              'known.',
          }),
        ),
      },
      { $id: 'ToolResultPart', ...closed },
    ),
  ],
  { $id: 'AgentEntryPart' },
);

export const AgentEntrySchema = Type.Object(
  {
    id: Type.String(),
    role: oneOf(['user', 'assistant', 'tool']),
    content: Type.Array(EntryPartSchema),
    runId: nullable(Type.String({ description: 'The prompt that the entry belongs to.' })),
    createdAt: Timestamp,
    outcome: Type.Optional(
      oneOf(['cancelled', 'failed', 'limit', 'stale'], {
        description:
          'Present only for a prompt whose run did not complete. `limit`: the run stopped at a limit for the ' +
          'steps, tokens or time of a prompt. `stale`: the server ended before the run did. Later ' +
          'requests to a model contain a note in place of the prompt and its answer. ' +
          'After a `limit` they contain prompt and answer, with a note that the run ended.',
      }),
    ),
  },
  { $id: 'AgentEntry', ...closed },
);
export type AgentEntry = Wire<typeof AgentEntrySchema>;
export type EntryPart = Wire<typeof EntryPartSchema>;
export type ToolCallPart = Extract<EntryPart, { type: 'tool-call' }>;
export type ToolResultPart = Extract<EntryPart, { type: 'tool-result' }>;
export type ShownImage = ToolResultPart['images'][number];
/** Why a prompt has no answer. */
export type PromptOutcome = NonNullable<AgentEntry['outcome']>;

export const AgentSessionStatusSchema = oneOf(['ready', 'busy', 'closed']);
export type AgentStatus = Wire<typeof AgentSessionStatusSchema>;

const summary = {
  sessionId: Type.String({
    description: 'The id of the conversation, or of its notebook when it is bound to one.',
  }),
  environmentId: nullable(Type.String()),
  notebookSessionId: nullable(Type.String()),
  ownerId: Type.String({
    description:
      'The user who owns the conversation: its creator (`createdBy`), until the conversation is handed over.',
  }),
  createdBy: CreatedBy,
  status: AgentSessionStatusSchema,
  closedBy: ClosedBy,
  config: Type.Object(
    {
      model: nullable(
        Type.String({ description: 'The model in effect: the default when none was requested.' }),
      ),
      instructions: nullable(Type.String()),
    },
    { $id: 'AgentConfig', ...closed },
  ),
  context: Type.Object(
    {
      datasourceSlugs: Type.Array(Type.String(), {
        description:
          'The datasources that the agent may query, with the rights of the member who prompts it. An agent that is bound to a ' +
          'notebook may also query those that are selected for the notebook.',
      }),
    },
    { $id: 'AgentContext', ...closed },
  ),
  currentRunId: nullable(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const AgentSessionSummarySchema = Type.Object(summary, { $id: 'AgentSessionSummary', ...closed });
export type AgentSessionSummary = Wire<typeof AgentSessionSummarySchema>;

export const AgentSessionSchema = Type.Object(
  { ...summary, entries: Type.Array(AgentEntrySchema) },
  { $id: 'AgentSession', ...closed },
);
export type AgentSession = Wire<typeof AgentSessionSchema>;

const identifier = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });

export const OpenAgentSessionSchema = Type.Object(
  {
    environmentId: identifier('The execution environment in which to open the conversation.'),
    notebookSessionId: optionalOrNull(
      identifier('A ready notebook session of the same environment, for the agent to work in.'),
    ),
    id: optionalOrNull(identifier('The id of a saved conversation to open again.')),
    config: Type.Optional(
      Type.Object(
        {
          model: Type.Optional(
            nullable(
              Type.String({
                minLength: 1,
                maxLength: 300,
                description: '`provider/model`; null means the default.',
              }),
            ),
          ),
          instructions: Type.Optional(nullable(Type.String({ maxLength: 100_000 }))),
        },
        {
          $id: 'NewAgentConfig',
          ...closed,
          description: 'Members that are omitted keep their saved values.',
        },
      ),
    ),
    context: Type.Optional(
      Type.Object(
        { datasourceSlugs: Type.Optional(DatasourceSlugsSchema) },
        { $id: 'NewAgentContext', ...closed },
      ),
    ),
  },
  {
    $id: 'OpenAgentSession',
    ...closed,
    examples: [
      {
        environmentId: 'env_01k6gq0000bbbbbbbbbbbbbbbb',
        config: { instructions: 'Answer in one sentence.' },
        context: { datasourceSlugs: ['sales'] },
      },
    ],
  },
);
export type OpenAgentSession = Wire<typeof OpenAgentSessionSchema>;

export const AgentSessionGrantSchema = Type.Object(
  {
    userId: Type.String(),
    createdBy: CreatedBy,
    createdAt: Timestamp,
  },
  { $id: 'AgentSessionGrant', ...closed },
);
export type AgentSessionGrant = Wire<typeof AgentSessionGrantSchema>;

export const AgentSessionGrantListSchema = listSchema('AgentSessionGrantList', AgentSessionGrantSchema);

export const NewAgentSessionGrantSchema = Type.Object(
  { userId: UserIdSchema },
  { $id: 'NewAgentSessionGrant', ...closed, examples: [{ userId: 'ada@example.com' }] },
);
