/** Entries of the audit. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

export const AuditEntrySchema = Type.Object(
  {
    id: Type.String(),
    createdAt: Timestamp,
    userId: Type.String({ description: 'The user who carried out the action.' }),
    tokenId: Type.String({ description: 'Empty for a query by a notebook.' }),
    action: Type.String({ description: 'The action, such as `member.add` or `datasource.query`.' }),
    target: Type.String({ description: 'The id or the slug of the object of the action.' }),
    outcome: oneOf(['done', 'failed', 'refused']),
    detail: nullable(Type.String({ description: 'Details such as a role or scopes. Never a secret.' })),
    address: Type.String({ description: 'The IP address that the request came from; empty for a query.' }),
    requestId: Type.String({ description: 'Empty for a query.' }),
    query: Type.Optional(
      Type.Object(
        {
          by: oneOf(['notebook', 'agent']),
          sessionId: nullable(
            Type.String({ description: 'The notebook session of the query, if it is known.' }),
          ),
          statements: Type.Integer({
            description:
              'The number of similar statements, within about one second, that the entry summarises.',
          }),
          rows: Type.Integer({ description: 'How many rows the statements returned in total.' }),
          durationMs: Type.Integer({
            description:
              'How many milliseconds the statements took in total, until their last rows were read.',
          }),
        },
        { $id: 'AuditedQuery', ...closed, description: 'Present for `datasource.query`.' },
      ),
    ),
  },
  { $id: 'AuditEntry', ...closed },
);
export type AuditEntry = Wire<typeof AuditEntrySchema>;
