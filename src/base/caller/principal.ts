import type { TokenId, UserId, WorkspaceId } from '../ids.ts';
import type { PageAccess } from './page-access.ts';
import type { Role } from './role.ts';

/** The caller of a request, with workspace and rights. It is made once per request, from the token and the headers. */
export interface Principal {
  readonly workspaceId: WorkspaceId;
  readonly userId: UserId;
  readonly tokenId: TokenId;
  readonly role: Role;
  readonly scopes: readonly string[];
  /** The access of a notebook's page, which limits its requests; absent in other requests. */
  readonly pageAccess?: PageAccess;
}

/** The user of an access token whose request names no workspace. */
export interface TokenHolder extends Pick<Principal, 'userId' | 'tokenId'> {
  readonly scopes: readonly string[];
  /** Whether the token is for one workspace only. */
  readonly isBound: boolean;
}

/** The caller of a request. */
export type Caller = Principal | TokenHolder;

/** The requirements of an action for its caller. They are checked, and shown in the documentation of the operation. */
export interface Requirements {
  readonly scopes: readonly string[];
  /** The lowest role that may perform the action. */
  readonly role: Role;
}

/** Authenticates and authorises callers. It is synchronous, so that a refusal needs no further turn of the event loop. */
export interface Auth {
  /**
   * Returns the caller for the values of the headers `Authorization` and `Service-Workspace-Id`, which are empty when
   * missing. Throws `unauthenticated`, `missing_workspace`, or `not_found` when the caller is not a member.
   */
  authenticate(authorization: string, workspaceHeader: string): Principal;
  /** Returns the holder of the token in the header `Authorization`. Throws `unauthenticated`. */
  identify(authorization: string): TokenHolder;
  /** Returns the caller for the secret in the cookie of a browser's session. Throws as `authenticate` does. */
  authenticateSession(secret: string, workspaceHeader: string): Principal;
  /** Returns the holder of a browser's session. Throws `unauthenticated`. */
  identifySignIn(secret: string): TokenHolder;
  /** Throws `missing_scope` or `role_too_low` when the caller may not do this. */
  authorize(principal: Principal, action: string): void;
  /** Returns the requirements of an action; `undefined` for an unknown action, which keeps the server from starting. */
  requirements(action: string): Requirements | undefined;
}
