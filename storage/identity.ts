import { defineRecord } from './codec.ts';

type Role = 'owner' | 'editor' | 'viewer';

export interface WorkspaceRecord {
  readonly name: string;
  readonly createdAt: string;
  /** Counted here, because a workspace must never lose its last owner. */
  readonly owners: number;
}

/** Key: workspace id. */
export const workspaceRecords = defineRecord<WorkspaceRecord>('workspace', 1);

export interface UserRecord {
  readonly createdAt: string;
}

/** Key: SYSTEM, user id. */
export const userRecords = defineRecord<UserRecord>('user', 1);

export interface MemberRecord {
  readonly role: Role;
  /** What this workspace calls the user. */
  readonly name: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Key: workspace id, user id. */
export const memberRecords = defineRecord<MemberRecord>('member', 1);

/** The workspaces of a user. Key: SYSTEM, user id, workspace id. */
export const userWorkspaces = defineRecord<null>('user-workspace', 1);

/** An access token, without the token: that is known by its hash alone. */
export interface AccessTokenRecord {
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  readonly name: string;
  readonly userId: string;
  /** The one workspace it is good for; null: every workspace of its user. */
  readonly workspaceId: string | null;
  readonly scopes: readonly string[];
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt: string | null;
}

/** Key: SYSTEM, token id. */
export const accessTokenRecords = defineRecord<AccessTokenRecord>('access-token', 1);

/** From the hash of a token to its id. Key: SYSTEM, hash. */
export const tokenHashes = defineRecord<string>('access-token-hash', 1);

/** The tokens that are bound to a workspace. Key: workspace id, token id. */
export const workspaceTokens = defineRecord<null>('workspace-token', 1);

/** The tokens of a user that are bound to no workspace. Key: SYSTEM, user id, token id. */
export const userTokens = defineRecord<null>('user-token', 1);

/** That the store was given its first workspace, owner and token. Key: SYSTEM. */
export const bootstrapRecord = defineRecord<{ readonly at: string; readonly tokenId: string }>(
  'bootstrap',
  1,
);
