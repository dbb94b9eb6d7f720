/** Workspaces, their members, and access tokens. */
import Type from 'typebox';
import { closed, nullable, oneOf, optionalOrNull, Timestamp, type Wire } from './shape.ts';

/** What a token may be used for, whatever its user's role is. */
export const SCOPES = [
  'workspaceRuntime:connect',
  'datasource:read',
  'workspace:manage',
  'server:observe',
] as const;
export type Scope = (typeof SCOPES)[number];

export const UserIdSchema = Type.String({
  pattern: '^[A-Za-z0-9._@-]{1,128}$',
  not: { enum: ['.', '..'] },
  description:
    'Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients ' +
    'could not request their paths.',
});

const RoleSchema = oneOf(['owner', 'editor', 'viewer'], {
  $id: 'Role',
  description: 'A viewer reads, an editor also writes, an owner also administers.',
});
export type Role = Wire<typeof RoleSchema>;

const DisplayNameSchema = Type.String({ minLength: 1, maxLength: 200 });

const ScopeSchema = oneOf(SCOPES, {
  $id: 'Scope',
  description: "What a token may be used for, within what its user's role allows.",
});

export const WorkspaceSchema = Type.Object(
  { id: Type.String(), name: DisplayNameSchema, createdAt: Timestamp },
  { $id: 'Workspace', ...closed },
);
export type Workspace = Wire<typeof WorkspaceSchema>;

export const NewWorkspaceSchema = Type.Object(
  { name: DisplayNameSchema },
  { $id: 'NewWorkspace', ...closed, examples: [{ name: 'Research' }] },
);
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
  { $id: 'NewMember', ...closed, examples: [{ userId: 'ada@example.com', role: 'editor', name: 'Ada' }] },
);
export type NewMember = Wire<typeof NewMemberSchema>;

export const MemberChangeSchema = Type.Object(
  { role: Type.Optional(RoleSchema), name: Type.Optional(nullable(DisplayNameSchema)) },
  { $id: 'MemberChange', ...closed, minProperties: 1, examples: [{ role: 'viewer' }] },
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
  { $id: 'CreatedAccessToken', ...closed },
);
export type CreatedAccessToken = Wire<typeof CreatedAccessTokenSchema>;

export const NewAccessTokenSchema = Type.Object(
  {
    name: DisplayNameSchema,
    scopes: Type.Array(ScopeSchema, { minItems: 1, uniqueItems: true }),
    userId: Type.Optional(UserIdSchema),
    expiresAt: optionalOrNull(Timestamp),
  },
  {
    $id: 'NewAccessToken',
    ...closed,
    examples: [{ name: 'nightly', scopes: ['workspaceRuntime:connect', 'datasource:read'] }],
  },
);
export type NewAccessToken = Wire<typeof NewAccessTokenSchema>;

const OwnWorkspaceSchema = Type.Object(
  { id: Type.String(), name: DisplayNameSchema, role: RoleSchema },
  { $id: 'OwnWorkspace', ...closed },
);
export type OwnWorkspace = Wire<typeof OwnWorkspaceSchema>;

export const OwnAccountSchema = Type.Object(
  {
    user: Type.Object({ id: UserIdSchema }, { $id: 'OwnUser', ...closed }),
    token: Type.Object(
      {
        id: tokenMembers.id,
        name: tokenMembers.name,
        workspaceId: tokenMembers.workspaceId,
        scopes: tokenMembers.scopes,
        createdAt: tokenMembers.createdAt,
        expiresAt: tokenMembers.expiresAt,
      },
      { $id: 'OwnToken', ...closed },
    ),
    workspaces: Type.Array(OwnWorkspaceSchema, {
      description: 'The workspaces that the token gives access to, by id.',
    }),
    nextCursor: Type.Union([Type.String(), Type.Null()], {
      description: 'The `after` of the next page of workspaces; null when there are no more.',
    }),
  },
  { $id: 'OwnAccount', ...closed },
);
export type OwnAccount = Wire<typeof OwnAccountSchema>;
