/** Workspaces, their members, and access tokens. */
import Type, { type TSchema } from 'typebox';
import { ROLES } from '#src/base/caller/role.ts';
import { USER_ID } from './patterns.ts';
import { closed, nullable, oneOf, optionalOrNull, Timestamp, type Wire } from './shape.ts';

/** The permitted use of a token, independent of its user's role. */
export const SCOPES = [
  'workspaceRuntime:connect',
  'datasource:read',
  'workspace:manage',
  'server:observe',
  'server:manage',
] as const;
export type Scope = (typeof SCOPES)[number];

export const UserIdSchema = Type.String({
  pattern: USER_ID,
  not: { enum: ['.', '..'] },
  description:
    'Chosen when the user is first added, for example a mail address. `.` and `..` are not allowed, because clients ' +
    'could not request their paths.',
});

const RoleSchema = oneOf(ROLES, {
  $id: 'Role',
  description: 'A viewer reads, an editor also writes, an owner also administers.',
});

const DisplayNameSchema = Type.String({ minLength: 1, maxLength: 200 });

const ScopeSchema = oneOf(SCOPES, {
  $id: 'Scope',
  description: 'The permitted use of a token. The role of its user limits it further.',
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

const limitOf = {
  sessions: 'Live notebook sessions.',
  runs: 'Runs in progress.',
  streams: 'Open event streams.',
  filesMb: 'Disk space of the files, in MiB.',
  files: 'Files and folders.',
  jobs: 'Jobs.',
  sessionsPerUser: 'Live notebook sessions that one member has opened.',
  runsPerUser: 'Runs in progress that one member has submitted.',
} as const;
type LimitSchemas<T extends TSchema> = { readonly [Name in keyof typeof limitOf]: T };

function limitMembers<T extends TSchema>(schemaOf: (description: string) => T): LimitSchemas<T> {
  const members = Object.entries(limitOf).map(([name, description]) => [name, schemaOf(description)]);
  return Object.fromEntries(members) as LimitSchemas<T>;
}

export const WorkspaceLimitsSchema = Type.Object(
  {
    workspaceId: Type.String(),
    ...limitMembers((description) =>
      nullable(Type.Integer({ minimum: 1, description: `${description} Null: no limit.` })),
    ),
    set: Type.Array(Type.String(), {
      description:
        'The names of the limits that are set for this workspace. All other limits come from the settings of the server.',
    }),
    updatedAt: nullable(Timestamp),
    updatedBy: nullable(UserIdSchema),
  },
  { $id: 'WorkspaceLimits', ...closed },
);
export type WorkspaceLimits = Wire<typeof WorkspaceLimitsSchema>;

export const NewWorkspaceLimitsSchema = Type.Object(
  limitMembers((description) =>
    optionalOrNull(
      Type.Integer({
        minimum: 0,
        maximum: 16_777_216,
        description: `${description} 0: no limit. Absent or null: the value from the settings of the server.`,
      }),
    ),
  ),
  { $id: 'NewWorkspaceLimits', ...closed, examples: [{ sessions: 20, runs: 40, sessionsPerUser: 4 }] },
);
export type NewWorkspaceLimits = Wire<typeof NewWorkspaceLimitsSchema>;

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
    description: 'The only workspace for which the token is valid; null means every workspace of its user.',
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
