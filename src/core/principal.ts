import type { TokenId, UserId, WorkspaceId } from './ids.ts';

/** What a member may do in a workspace: a viewer reads, an editor also writes, an owner also administers. */
export type Role = 'owner' | 'editor' | 'viewer';

/** Who is calling, in which workspace, with which rights; made once per request from the token and the headers. */
export interface Principal {
  readonly workspaceId: WorkspaceId;
  readonly userId: UserId;
  readonly tokenId: TokenId;
  readonly role: Role;
  readonly scopes: readonly string[];
}

/** What an action asks of its caller, for the check and for the documentation of the operation. */
export interface Requirements {
  readonly scopes: readonly string[];
  /** The lowest role that may do it. */
  readonly role: Role;
}

/** How the edge learns who calls and whether they may: synchronous, so that a refusal costs no turn. */
export interface Auth {
  /**
   * The caller behind the values of the `Authorization` and `Service-Workspace-Id` headers, empty when missing.
   * Throws `unauthenticated`, `missing_workspace`, or `not_found` for a workspace the caller is no member of.
   */
  authenticate(authorization: string, workspaceHeader: string): Principal;
  /** Throws `missing_scope` or `role_too_low` when the principal may not do this. */
  authorize(principal: Principal, action: string): void;
  /** What an action needs, or undefined when there is no such action: the server then refuses to start. */
  requirements(action: string): Requirements | undefined;
}
