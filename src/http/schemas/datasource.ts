import Type from 'typebox';
import { nullable, Timestamp } from './paging.ts';

export const DATASOURCE_BODY_LIMIT_BYTES = 512 * 1024;

export const Slug = Type.String({
  maxLength: 120,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*$',
  description: 'Case-sensitive; starts with a letter or digit.',
});

/** Checked by its connector: see the connection schema. */
export const ConnectionSchema = Type.Unsafe<unknown>({
  type: 'object',
  required: ['kind'],
  writeOnly: true,
  description:
    'A complete connection, as `GET /api/v3/datasource-connections/schema` describes it. Never read back.',
});

export const ReplacementFields = {
  name: Type.Optional(nullable(Type.String({ maxLength: 200 }))),
  connection: ConnectionSchema,
  testConnection: Type.Optional(
    Type.Boolean({ default: false, description: 'Test before saving; a failed test saves nothing.' }),
  ),
};

export const DatasourceSchema = Type.Object(
  {
    id: Type.String(),
    slug: Type.String(),
    kind: Type.String(),
    name: nullable(Type.String()),
    revision: Type.Integer({ minimum: 1, description: 'A new connection after deletion starts at 1.' }),
    configured: Type.Boolean({ description: 'A connection is stored; not that its last test passed.' }),
    embedded: Type.Boolean({ description: 'Runs inside the server, on files of the workspace.' }),
  },
  { $id: 'Datasource', additionalProperties: false },
);

export const ConnectionTestSchema = Type.Object(
  {
    ok: Type.Boolean(),
    message: Type.String({ description: 'Generic: nothing of the connection, nothing of the driver.' }),
    elapsedMs: Type.Number(),
  },
  { $id: 'ConnectionTest', additionalProperties: false },
);

export const GrantSchema = Type.Object(
  { subject: Type.String(), grantedBy: Type.String(), createdAt: Timestamp },
  { $id: 'DatasourceGrant', additionalProperties: false },
);

export const GrantSubject = Type.String({
  maxLength: 140,
  pattern: '^(user:[A-Za-z0-9._@-]{1,128}|role:(editor|viewer))$',
  description: '`user:<id>`, `role:editor`, or `role:viewer` (which includes editors).',
});
