import Type from 'typebox';
import { SCOPES } from '#src/auth/permissions.ts';
import { nullable, Timestamp } from './paging.ts';

export const UserId = Type.String({
  pattern: '^(?!\\.{1,2}$)[A-Za-z0-9._@-]{1,128}$',
  description:
    'Chosen by whoever adds the user first, such as a mail address. Not `.` or `..`: no client could ask for the path.',
});

export const RoleSchema = Type.Union(
  [Type.Literal('owner'), Type.Literal('editor'), Type.Literal('viewer')],
  {
    description: 'A viewer reads, an editor also writes, an owner also administers.',
  },
);

export const DisplayName = Type.String({ minLength: 1, maxLength: 200 });

export const WorkspaceSchema = Type.Object(
  { id: Type.String(), name: DisplayName, createdAt: Timestamp },
  { $id: 'Workspace', additionalProperties: false },
);

export const MemberSchema = Type.Object(
  {
    userId: UserId,
    role: RoleSchema,
    name: nullable(DisplayName),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Member', additionalProperties: false },
);

export const ScopeSchema = Type.Union(
  SCOPES.map((scope) => Type.Literal(scope)),
  { description: 'What a token may be used for, however much its user may do.' },
);

const TOKEN_MEMBERS = {
  id: Type.String(),
  name: DisplayName,
  userId: UserId,
  workspaceId: Type.Union([Type.String(), Type.Null()], {
    description: 'The one workspace it is good for; null: every workspace of its user.',
  }),
  scopes: Type.Array(ScopeSchema),
  createdAt: Timestamp,
  createdBy: UserId,
  expiresAt: nullable(Timestamp),
};

export const AccessTokenSchema = Type.Object(TOKEN_MEMBERS, {
  $id: 'AccessToken',
  additionalProperties: false,
});

export const NewAccessTokenSchema = Type.Object(
  { ...TOKEN_MEMBERS, token: Type.String({ description: 'The token itself. It is shown this once.' }) },
  { $id: 'NewAccessToken', additionalProperties: false },
);
