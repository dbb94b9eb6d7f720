import Type from 'typebox';
import { nullable, Timestamp } from './paging.ts';

const closed = { additionalProperties: false } as const;

export const AuditEntrySchema = Type.Object(
  {
    id: Type.String(),
    at: Timestamp,
    userId: Type.String(),
    tokenId: Type.String({ description: 'Empty for a query of a notebook.' }),
    action: Type.String({ description: 'What was done, such as `member.add` or `datasource.query`.' }),
    target: Type.String({ description: 'What it was done to: an id or a slug.' }),
    outcome: Type.Union([Type.Literal('done'), Type.Literal('failed'), Type.Literal('refused')]),
    detail: nullable(Type.String({ description: 'Such as a role or scopes; never a secret.' })),
    address: Type.String({ description: 'Where the request came from; empty for a query.' }),
    requestId: Type.String({ description: 'Empty for a query.' }),
    query: Type.Optional(
      Type.Object(
        {
          by: Type.Union([Type.Literal('notebook'), Type.Literal('agent')]),
          sessionId: nullable(Type.String({ description: 'The notebook session, where it is known.' })),
          statements: Type.Integer({ description: 'Alike and within about a second: one entry.' }),
          rows: Type.Integer({ description: 'Given out by all of them.' }),
          durationMs: Type.Integer({ description: 'Of all of them, until the last row was taken.' }),
        },
        { ...closed, description: 'Of `datasource.query`.' },
      ),
    ),
  },
  { $id: 'AuditEntry', ...closed },
);
