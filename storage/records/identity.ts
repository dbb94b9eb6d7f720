import type { Member, Scope } from '#src/contract/wire/identity.ts';
import { defineMark, defineRecord } from '../codec.ts';
import type { Store } from '../store.ts';

export interface WorkspaceRecord {
  readonly name: string;
  readonly createdAt: string;
  /** The number of owners of the workspace, so that the workspace never loses its last owner. */
  readonly owners: number;
}

/** Written in the home of the workspace, as are its members. Key: workspace id. */
export const workspaceRecords = defineRecord<WorkspaceRecord>('workspace', 1);

/**
 * Returns whether a workspace has not been deleted. Additions to a workspace check this in the turn in which they are
 * written, because the request may have been admitted before the deletion.
 */
export function workspaceExists(store: Pick<Store, 'has'>, workspaceId: string): boolean {
  return store.has(workspaceRecords, workspaceId);
}

export interface UserRecord {
  readonly createdAt: string;
}

/**
 * Written by the worker that first adds the user to a workspace. If two workers do that at once, their records differ
 * only in the time. Key: SYSTEM, user id.
 */
export const userRecords = defineRecord<UserRecord>('user', 1);

export type MemberRecord = Omit<Member, 'userId'>;

/** Key: workspace id, user id. */
export const memberRecords = defineRecord<MemberRecord>('member', 1);

/** Index of the workspaces of a user. Key: SYSTEM, user id, workspace id. */
export const userWorkspaces = defineMark('user-workspace');

/** An access token. The token itself is not stored, only its hash. */
export interface AccessTokenRecord {
  /** SHA-256 in hexadecimal. */
  readonly hash: string;
  readonly name: string;
  readonly userId: string;
  /** The only workspace that the token is valid for; null means every workspace of its user. */
  readonly workspaceId: string | null;
  readonly scopes: readonly Scope[];
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt: string | null;
  /** Present for the session of a browser, whose secret is in a cookie. It is not in the indexes of tokens. */
  readonly session?: SessionOrigin;
}

/** How the session of a browser began, and when it ends without use. */
export interface SessionOrigin {
  /**
   * The access token with which its user signed in. The session is valid as long as that token.
   * Null: the user signed in with the identity provider.
   */
  readonly signedInWith: string | null;
  readonly idleMs: number;
}

/** Written in shared turns, and removed by the worker that revokes the token. Key: SYSTEM, token id. */
export const accessTokenRecords = defineRecord<AccessTokenRecord>('access-token', 1);

/** Index from the hash of a token to its id. Key: SYSTEM, hash. */
export const tokenHashes = defineRecord<string>('access-token-hash', 1);

/** Index of the tokens that are bound to a workspace. Key: workspace id, token id. */
export const workspaceTokens = defineMark('workspace-token');

/** Index of a user's tokens that are not bound to a workspace. Key: SYSTEM, user id, token id. */
export const userTokens = defineMark('user-token');

/** Index of a user's sessions in browsers. Key: SYSTEM, user id, token id. */
export const userSessions = defineMark('user-session');

/** When a session in a browser was last used. Any worker that notices a use writes it. Key: SYSTEM, token id. */
export const sessionUses = defineRecord<{ readonly usedAtMs: number }>('user-session-use', 1);

/** A user who signs in with the identity provider. */
export interface ProviderAccount {
  readonly issuer: string;
  /** The provider's identifier of the person. The provider never gives it to another person. */
  readonly subject: string;
  /** The workspaces in which the membership follows from the groups of the person. */
  readonly managed: readonly string[];
  /** Whether the provider knew the person when it was last asked. If not, no session and no access token of the user is valid. */
  readonly isActive: boolean;
  readonly checkedAtMs: number;
}

/** Written in shared turns. Key: SYSTEM, user id. */
export const providerAccounts = defineRecord<ProviderAccount>('provider-account', 1);

/**
 * Returns whether a token is for the whole server. A token that is bound to a workspace is not for the whole server.
 * The session of a person who signed in with the identity provider is not, either.
 */
export function isUnbound({ workspaceId, session }: AccessTokenRecord): boolean {
  return workspaceId === null && session?.signedInWith !== null;
}

/** Present once the store has its first workspace, owner and token. Key: SYSTEM. */
export const bootstrapRecord = defineRecord<{ readonly at: string; readonly tokenId: string }>(
  'bootstrap',
  1,
);
