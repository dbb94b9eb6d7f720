/** Workspaces, their members, and access tokens. */
import Type from 'typebox';
import { closed, nullable, oneOf, Timestamp, type Wire } from './shape.ts';

/** What a token may be used for, whatever its user's role is. */
export const SCOPES = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'] as const;
export type Scope = (typeof SCOPES)[number];

export const UserIdSchema = Type.String({
  pattern: '^(?!\\.{1,2}$)[A-Za-z0-9._@-]{1,128}$',
  description:
    'Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients ' +
    'could not request their paths.',
});

const RoleSchema = oneOf(['owner', 'editor', 'viewer'], {
  description: 'A viewer reads, an editor also writes, an owner also administers.',
});
export type Role = Wire<typeof RoleSchema>;

const DisplayNameSchema = Type.String({ minLength: 1, maxLength: 200 });

const ScopeSchema = oneOf(SCOPES, {
  description: "What a token may be used for, within what its user's role allows.",
});

export const WorkspaceSchema = Type.Object(
  { id: Type.String(), name: DisplayNameSchema, createdAt: Timestamp },
  { $id: 'Workspace', ...closed },
);
export type Workspace = Wire<typeof WorkspaceSchema>;

export const NewWorkspaceSchema = Type.Object({ name: DisplayNameSchema }, closed);
export type NewWorkspace = Wire<typeof NewWorkspaceSchema>;

export const MemberSchema = Type.Object(
  {
    userId: UserIdSchema,
    role: RoleSchema,
    name: nullable(DisplayNameSchema),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { $id: 'Member', ...closed },
);
export type Member = Wire<typeof MemberSchema>;

export const NewMemberSchema = Type.Object(
  { userId: UserIdSchema, role: RoleSchema, name: Type.Optional(nullable(DisplayNameSchema)) },
  closed,
);
export type NewMember = Wire<typeof NewMemberSchema>;

export const MemberChangeSchema = Type.Object(
  { role: Type.Optional(RoleSchema), name: Type.Optional(nullable(DisplayNameSchema)) },
  { ...closed, minProperties: 1 },
);
export type MemberChange = Wire<typeof MemberChangeSchema>;

const tokenMembers = {
  id: Type.String(),
  name: DisplayNameSchema,
  userId: UserIdSchema,
  workspaceId: Type.Union([Type.String(), Type.Null()], {
    description: 'The only workspace it is valid for; null means every workspace of its user.',
  }),
  scopes: Type.Array(ScopeSchema),
  createdAt: Timestamp,
  createdBy: UserIdSchema,
  expiresAt: nullable(Timestamp),
};

export const AccessTokenSchema = Type.Object(tokenMembers, { $id: 'AccessToken', ...closed });
export type AccessToken = Wire<typeof AccessTokenSchema>;

export const CreatedAccessTokenSchema = Type.Object(
  { ...tokenMembers, token: Type.String({ description: 'The token itself. It is never returned again.' }) },
  { $id: 'NewAccessToken', ...closed },
);
export type CreatedAccessToken = Wire<typeof CreatedAccessTokenSchema>;

export const NewAccessTokenSchema = Type.Object(
  {
    name: DisplayNameSchema,
    scopes: Type.Array(ScopeSchema, { minItems: 1, uniqueItems: true }),
    userId: Type.Optional(UserIdSchema),
    expiresAt: Type.Optional(Timestamp),
  },
  closed,
);
export type NewAccessToken = Wire<typeof NewAccessTokenSchema>;
