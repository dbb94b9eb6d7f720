import Type from 'typebox';
import { DatasourceSlugs } from './notebook.ts';
import { nullable, Timestamp } from './paging.ts';

const closed = { additionalProperties: false } as const;

const ToolStatus = Type.Union(
  (['completed', 'failed', 'cancelled'] as const).map((status) => Type.Literal(status)),
);

const EntryPart = Type.Union(
  [
    Type.Object({ type: Type.Literal('text'), text: Type.String({ description: 'Markdown.' }) }, closed),
    Type.Object({ type: Type.Literal('reasoning'), text: Type.String() }, closed),
    Type.Object(
      {
        type: Type.Literal('tool-call'),
        callId: Type.String(),
        name: Type.String(),
        input: Type.Unknown({ description: 'An object; text when the model did not write JSON.' }),
      },
      closed,
    ),
    Type.Object(
      {
        type: Type.Literal('tool-result'),
        callId: Type.String(),
        name: Type.String(),
        status: ToolStatus,
        output: Type.String(),
        images: Type.Array(
          Type.Object(
            { mimetype: Type.String(), assetId: Type.String({ description: 'An asset of the run.' }) },
            closed,
          ),
        ),
      },
      closed,
    ),
  ],
  { $id: 'AgentEntryPart' },
);

export const AgentEntrySchema = Type.Object(
  {
    id: Type.String(),
    role: Type.Union([Type.Literal('user'), Type.Literal('assistant'), Type.Literal('tool')]),
    content: Type.Array(EntryPart),
    runId: nullable(Type.String({ description: 'The prompt it belongs to.' })),
    createdAt: Timestamp,
  },
  { $id: 'AgentEntry', ...closed },
);

const summary = {
  sessionId: Type.String({ description: 'Of the conversation; that of its notebook when it is bound.' }),
  environmentId: nullable(Type.String()),
  notebookSessionId: nullable(Type.String()),
  status: Type.Union([Type.Literal('ready'), Type.Literal('busy'), Type.Literal('closed')]),
  config: Type.Object(
    {
      model: nullable(Type.String({ description: 'In effect: the default when none was asked for.' })),
      instructions: nullable(Type.String()),
    },
    closed,
  ),
  context: Type.Object({ datasourceSlugs: Type.Array(Type.String()) }, closed),
  currentRunId: nullable(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
};

export const AgentSessionSummarySchema = Type.Object(summary, { $id: 'AgentSessionSummary', ...closed });

export const AgentSessionSchema = Type.Object(
  { ...summary, entries: Type.Array(AgentEntrySchema) },
  { $id: 'AgentSession', ...closed },
);

const identifier = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });

export const OpenAgentSessionSchema = Type.Object(
  {
    environmentId: identifier('Where it belongs.'),
    notebookSessionId: Type.Optional(
      identifier('A ready notebook session of the same environment, for the agent to work in.'),
    ),
    id: Type.Optional(identifier('A saved conversation to open again.')),
    config: Type.Optional(
      Type.Object(
        {
          model: Type.Optional(
            nullable(
              Type.String({
                minLength: 1,
                maxLength: 300,
                description: '`provider/model`; null is the default.',
              }),
            ),
          ),
          instructions: Type.Optional(nullable(Type.String({ maxLength: 100_000 }))),
        },
        { ...closed, description: 'Omitted members stay as they are saved.' },
      ),
    ),
    context: Type.Optional(
      Type.Object(
        {
          datasourceSlugs: Type.Optional(DatasourceSlugs),
        },
        closed,
      ),
    ),
  },
  closed,
);

export const ShareSchema = Type.Object(
  { userId: Type.String(), grantedBy: Type.String(), createdAt: Timestamp },
  { $id: 'AgentSessionGrant', ...closed },
);
