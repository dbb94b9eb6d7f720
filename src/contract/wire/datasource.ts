/** Datasources, their connections, and with whom they are shared. */
import Type from 'typebox';
import { GRANT_SUBJECT, SLUG } from './patterns.ts';
import { CreatedBy, closed, listSchema, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

const SlugSchema = Type.String({
  maxLength: 120,
  pattern: SLUG,
  description: 'Case-sensitive; starts with a letter or a digit.',
});

/** The connector of its kind checks it further; the OpenAPI document has the schemas of all connectors in its place. */
export const ConnectionSchema = Type.Unsafe<Readonly<Record<string, unknown>>>({
  $id: 'DatasourceConnection',
  type: 'object',
  required: ['kind'],
  writeOnly: true,
  description:
    'A complete connection, as `GET /api/v3/datasource-connections/schema` describes it. The connection is never returned.',
});
/** A complete connection: its `kind`, and the members that the connection schema gives for that kind. */
export type DatasourceConnection = Wire<typeof ConnectionSchema>;

const fields = {
  name: Type.Optional(nullable(Type.String({ maxLength: 200 }))),
  connection: ConnectionSchema,
  testConnection: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Whether to test the connection first. When the test fails, nothing is saved.',
    }),
  ),
};

const CONNECTION_EXAMPLE = { kind: 'sqlite', path: 'sales.sqlite' };

export const NewDatasourceSchema = Type.Object(
  { slug: SlugSchema, ...fields },
  {
    $id: 'NewDatasource',
    ...closed,
    examples: [{ slug: 'sales', name: 'Sales', connection: CONNECTION_EXAMPLE }],
  },
);
export type NewDatasource = Wire<typeof NewDatasourceSchema>;

export const DatasourceReplacementSchema = Type.Object(fields, {
  $id: 'DatasourceReplacement',
  ...closed,
  examples: [{ connection: CONNECTION_EXAMPLE }],
});
export type DatasourceReplacement = Wire<typeof DatasourceReplacementSchema>;

export const ConnectionTestRequestSchema = Type.Object(
  { connection: ConnectionSchema },
  { $id: 'ConnectionTestRequest', ...closed, examples: [{ connection: CONNECTION_EXAMPLE }] },
);

const warnings = Type.Optional(
  Type.Array(
    Type.Object(
      {
        code: oneOf(['account_may_write', 'account_rights_unknown'], {
          description:
            '`account_may_write`: according to the database, the account may change something. ' +
            '`account_rights_unknown`: the database cannot tell, or was not asked.',
        }),
        message: Type.String(),
      },
      { $id: 'DatasourceWarning', ...closed },
    ),
    {
      description:
        'Warnings about the rights of the account, because agents will use it, for kinds of databases without a read-only mode ' +
        '(mssql, snowflake, databricks, trino). Present in responses to a successful test, and to ' +
        'creating and replacing a datasource; absent when there are none.',
    },
  ),
);

export const DatasourceSchema = Type.Object(
  {
    id: Type.String(),
    slug: Type.String(),
    kind: Type.String(),
    name: nullable(Type.String()),
    revision: Type.Integer({
      minimum: 1,
      description:
        'Increases with each replacement of the connection. A new datasource with the same slug starts at 1 again.',
    }),
    configured: Type.Boolean({
      description: 'Whether a connection is stored, whatever the result of the last test.',
    }),
    embedded: Type.Boolean({
      description: 'Whether the database runs inside the server, on files of the workspace.',
    }),
    warnings,
    createdBy: CreatedBy,
    createdAt: Timestamp,
    updatedAt: Type.String({
      format: 'date-time',
      description: 'When the connection of the datasource was last replaced.',
    }),
  },
  { $id: 'Datasource', ...closed },
);
export type Datasource = Wire<typeof DatasourceSchema>;
export type DatasourceWarning = NonNullable<Datasource['warnings']>[number];

export const DeletedDatasourceSchema = Type.Object(
  { slug: Type.String(), deleted: Type.Literal(true) },
  { $id: 'DeletedDatasource', ...closed },
);

export const ConnectionTestSchema = Type.Object(
  {
    ok: Type.Boolean(),
    message: Type.String({
      description: 'A general text without details of the connection or the driver.',
    }),
    elapsedMs: Type.Number(),
    warnings,
  },
  { $id: 'ConnectionTest', ...closed },
);
export type ConnectionTest = Wire<typeof ConnectionTestSchema>;

export const DatasourceGrantSchema = Type.Object(
  {
    subject: Type.String(),
    createdBy: CreatedBy,
    createdAt: Timestamp,
  },
  { $id: 'DatasourceGrant', ...closed },
);
export type DatasourceGrant = Wire<typeof DatasourceGrantSchema>;

export const DatasourceGrantListSchema = listSchema('DatasourceGrantList', DatasourceGrantSchema);

export const NewDatasourceGrantSchema = Type.Object(
  {
    subject: Type.Unsafe<`user:${string}` | 'role:editor' | 'role:viewer'>(
      Type.String({
        maxLength: 140,
        pattern: GRANT_SUBJECT,
        description: '`user:<id>`, `role:editor`, or `role:viewer`, which includes editors.',
      }),
    ),
  },
  { $id: 'NewDatasourceGrant', ...closed, examples: [{ subject: 'role:editor' }] },
);
export type GrantSubject = Wire<typeof NewDatasourceGrantSchema>['subject'];
