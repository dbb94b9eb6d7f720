/**
 * Finds the caller of a request from its token and its workspace. Callers are cached until anything about identity is
 * written; whether a token has expired is checked every time.
 */
import { AppError, notFound } from '#src/core/errors.ts';
import type { TokenId, UserId, WorkspaceId } from '#src/core/ids.ts';
import type { Auth, Caller, Principal, Requirements, TokenHolder } from '#src/core/principal.ts';
import type { Role } from '#src/wire/identity.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  type AccessTokenRecord,
  accessTokenRecords,
  type MemberRecord,
  memberRecords,
  tokenHashes,
  workspaceExists,
} from '#storage/records/identity.ts';
import type { Identity } from './identity.ts';
import { ACTIONS, authorize, reaches } from './permissions.ts';
import { bearerToken, tokenHash } from './token-secret.ts';

interface KnownCaller {
  readonly principal: Principal;
  readonly expiresAtMs: number;
}

const MAX_CACHED = 10_000;

const PLAUSIBLE_WORKSPACE = /^[A-Za-z0-9_-]{1,64}$/;

export class Authenticator implements Auth {
  readonly #identity: Identity;
  readonly #known = new Map<string, KnownCaller>();
  readonly #limit: number;
  #revision = 0;
  /** Called with the time at which the token of a caller expires, before the caller is accepted; infinity means never. */
  onExpiring: (ms: number) => void = () => undefined;

  /** `limit` is how many callers are cached at most; the oldest are dropped first. */
  constructor(identity: Identity, limit = MAX_CACHED) {
    this.#identity = identity;
    this.#limit = limit;
  }

  /** See `Auth`. */
  authenticate(authorization: string, workspaceHeader: string): Principal {
    const token = bearerToken(authorization);
    if (token === undefined) throw unauthenticated();
    const hash = tokenHash(token);
    if (this.#revision !== this.#identity.revision) {
      this.#known.clear();
      this.#revision = this.#identity.revision;
    }
    const key = hash + workspaceHeader;
    const caller = this.#known.get(key) ?? this.#remember(key, this.#find(hash, workspaceHeader));
    if (caller.expiresAtMs <= this.#identity.nowMs()) throw unauthenticated();
    return caller.principal;
  }

  /** See `Auth`. */
  identify(authorization: string): TokenHolder {
    const token = bearerToken(authorization);
    if (token === undefined) throw unauthenticated();
    const { tokenId, record } = this.#validToken(tokenHash(token));
    const { userId, scopes, workspaceId } = record;
    this.onExpiring(expiryOf(record));
    return { tokenId, userId: userId as UserId, scopes, isBound: workspaceId !== null };
  }

  /** Returns the role that an earlier caller would have now; undefined without a valid token or a membership. */
  #roleNow({ tokenId, userId, workspaceId }: Principal): Role | undefined {
    return this.#isValidNow(tokenId) ? this.#memberNow(workspaceId, userId)?.role : undefined;
  }

  /** A token whose record is damaged is not valid, because nothing says when it expires. */
  #isValidNow(tokenId: TokenId): boolean {
    const token = unlessDamaged(() => this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId));
    return token !== undefined && expiryOf(token) > this.#identity.nowMs();
  }

  /**
   * Returns a function that returns whether a caller would be admitted now and may do an action. A caller whose record
   * is damaged is not admitted. The function looks up each caller only once, so use it at once and do not keep it.
   */
  createRevalidator(): (caller: Caller | undefined, action?: string) => boolean {
    const known = new Map<Principal, Role | undefined>();
    return (caller, action) => {
      if (caller === undefined) return true;
      if (!('workspaceId' in caller)) return this.#isValidNow(caller.tokenId);
      const role = known.has(caller) ? known.get(caller) : this.#roleNow(caller);
      known.set(caller, role);
      const needed = action === undefined ? undefined : this.requirements(action);
      return role !== undefined && (needed === undefined || reaches(role, needed.role));
    };
  }

  /** Renews a caller as `renewPrincipal` does. For a caller that names no workspace only the token counts. */
  renew(caller: Caller, action?: string): Caller {
    if ('workspaceId' in caller) return this.renewPrincipal(caller, action);
    if (!this.#isValidNow(caller.tokenId)) throw unauthenticated();
    return caller;
  }

  /**
   * Returns an earlier caller with its current role. Throws when its token, its membership or the right to this action is gone.
   */
  renewPrincipal(principal: Principal, action = ''): Principal {
    const { tokenId, userId, workspaceId } = principal;
    if (!this.#isValidNow(tokenId)) throw unauthenticated();
    const role = this.#memberNow(workspaceId, userId)?.role;
    if (role === undefined) throw notFound();
    const renewed = role === principal.role ? principal : Object.freeze({ ...principal, role });
    authorize(renewed, action);
    return renewed;
  }

  readonly authorize = authorize;

  requirements(action: string): Requirements | undefined {
    return ACTIONS.get(action);
  }

  /** Returns whether the caller's token is bound to one workspace. */
  isBound({ tokenId }: Principal): boolean {
    return this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId)?.workspaceId !== null;
  }

  #find(hash: string, workspaceHeader: string): KnownCaller {
    const { tokenId, record: token } = this.#validToken(hash);
    if (workspaceHeader === '') {
      throw new AppError('missing_workspace', 'Name the workspace in the header Service-Workspace-Id.');
    }
    if (!PLAUSIBLE_WORKSPACE.test(workspaceHeader)) throw notFound();
    if (token.workspaceId !== null && token.workspaceId !== workspaceHeader) throw notFound();
    const member = this.#member(workspaceHeader, token.userId);
    if (member === undefined) throw notFound();
    const principal: Principal = Object.freeze({
      workspaceId: workspaceHeader as WorkspaceId,
      userId: token.userId as UserId,
      tokenId,
      role: member.role,
      scopes: Object.freeze([...token.scopes]),
    });
    return { principal, expiresAtMs: expiryOf(token) };
  }

  #validToken(hash: string): { readonly tokenId: TokenId; readonly record: AccessTokenRecord } {
    const { store } = this.#identity;
    const tokenId = store.get(tokenHashes, SYSTEM, hash);
    const record = tokenId === undefined ? undefined : store.get(accessTokenRecords, SYSTEM, tokenId);
    if (tokenId === undefined || record === undefined) throw unauthenticated();
    if (expiryOf(record) <= this.#identity.nowMs()) throw unauthenticated();
    // A token ends with the workspace that it is bound to.
    const { workspaceId } = record;
    if (workspaceId !== null && !workspaceExists(store, workspaceId)) throw unauthenticated();
    return { tokenId: tokenId as TokenId, record };
  }

  /** Returns the membership of a user in a workspace; undefined when they are not a member, or it was deleted. */
  #member(workspaceId: string, userId: string): MemberRecord | undefined {
    const { store } = this.#identity;
    if (!workspaceExists(store, workspaceId)) return undefined;
    return store.get(memberRecords, workspaceId, userId);
  }

  /**
   * Returns the membership like `#member`, but undefined when its record is damaged: the rights are then unknown, and
   * an error would keep the remaining callers from being checked.
   */
  #memberNow(workspaceId: string, userId: string): MemberRecord | undefined {
    return unlessDamaged(() => this.#member(workspaceId, userId));
  }

  #remember(key: string, caller: KnownCaller): KnownCaller {
    if (this.#known.size >= this.#limit) {
      const [oldest] = this.#known.keys();
      if (oldest !== undefined) this.#known.delete(oldest);
    }
    this.#known.set(key, caller);
    this.onExpiring(caller.expiresAtMs);
    return caller;
  }
}

function expiryOf({ expiresAt }: AccessTokenRecord): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

/** The error is the same for a token that is missing, malformed, unknown, expired or revoked. */
function unauthenticated(): AppError {
  return new AppError('unauthenticated', 'Send a valid access token as Authorization: Bearer <token>.');
}
