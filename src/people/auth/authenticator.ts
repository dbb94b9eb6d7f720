/**
 * Finds the caller of a request from its token and its workspace. Callers are cached until any write to identity; the expiry of the
 * token is checked every time.
 */

import type { Auth, Caller, Principal, Requirements, TokenHolder } from '#src/base/caller/principal.ts';
import type { Role } from '#src/base/caller/role.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  type AccessTokenRecord,
  accessTokenRecords,
  isUnbound,
  type MemberRecord,
  memberRecords,
  providerAccounts,
  sessionUses,
  tokenHashes,
  userWorkspaces,
  workspaceExists,
} from '#storage/records/identity.ts';
import { CallerCache, type KnownCaller } from './caller-cache.ts';
import type { Identity } from './identity.ts';
import { ACTIONS, authorize, reaches } from './permissions.ts';
import { bearerToken, hashOfDigest, sessionDigest, tokenDigest, tokenHash } from './token-secret.ts';

interface ValidToken {
  readonly tokenId: TokenId;
  readonly record: AccessTokenRecord;
  readonly expiresAtMs: number;
}

/** The most writes of a session's last use within its idle time. */
const NOTES_WHILE_IDLE = 20;

/** How long a person's session stays valid while the identity provider does not answer. */
export const MAX_UNCHECKED_MS = 15 * 60_000;

const MAX_CACHED = 10_000;

const PLAUSIBLE_WORKSPACE = /^[A-Za-z0-9_-]{1,64}$/;

export class Authenticator implements Auth {
  readonly #identity: Identity;
  readonly #known: CallerCache;
  #revision = 0;
  /** Called with the time at which the token of a caller expires, before the caller is accepted; infinity means never. */
  onExpiring: (ms: number) => void = () => undefined;

  /** `limit` is the most callers that are cached. */
  constructor(identity: Identity, limit = MAX_CACHED) {
    this.#identity = identity;
    this.#known = new CallerCache(limit);
  }

  /** See `Auth`. */
  authenticate(authorization: string, workspaceHeader: string): Principal {
    const token = bearerToken(authorization);
    if (token === undefined) throw unauthenticated();
    const digest = tokenDigest(token);
    if (this.#revision !== this.#identity.revision) this.#forgetAll();
    const caller = this.#known.find(digest, workspaceHeader) ?? this.#look(digest, workspaceHeader);
    if (caller.expiresAtMs <= this.#identity.nowMs()) throw unauthenticated();
    return caller.principal;
  }

  /**
   * See `Auth`. A session may have been used in another worker since it was cached, so an idle session is
   * looked up again.
   */
  authenticateSession(secret: string, workspaceHeader: string): Principal {
    const digest = sessionDigest(secret);
    if (digest === undefined) throw unauthenticated();
    if (this.#revision !== this.#identity.revision) this.#forgetAll();
    const cached = this.#known.find(digest, workspaceHeader);
    const isCurrent = cached !== undefined && cached.expiresAtMs > this.#identity.nowMs();
    if (cached !== undefined && !isCurrent) this.#known.forget(digest, workspaceHeader);
    const caller = isCurrent ? cached : this.#look(digest, workspaceHeader);
    this.#noteUse(caller.principal.tokenId);
    return caller.principal;
  }

  /** See `Auth`. */
  identify(authorization: string): TokenHolder {
    const token = bearerToken(authorization);
    if (token === undefined) throw unauthenticated();
    return this.#holder(tokenHash(token));
  }

  /** See `Auth`. */
  identifySignIn(secret: string): TokenHolder {
    const digest = sessionDigest(secret);
    if (digest === undefined) throw unauthenticated();
    const holder = this.#holder(hashOfDigest(digest));
    this.#noteUse(holder.tokenId);
    return holder;
  }

  #holder(hash: string): TokenHolder {
    const { tokenId, record, expiresAtMs } = this.#validToken(hash);
    const { userId, scopes } = record;
    this.onExpiring(expiresAtMs);
    return { tokenId, userId: userId as UserId, scopes, isBound: !isUnbound(record) };
  }

  /** Stores that a session is in use, at most some twenty times within its idle time. */
  #noteUse(tokenId: TokenId): void {
    const { store } = this.#identity;
    const record = store.get(accessTokenRecords, SYSTEM, tokenId);
    if (record?.session === undefined || store.isFull || store.isReadOnly) return;
    const usedAtMs = this.#identity.nowMs();
    const last = store.get(sessionUses, SYSTEM, tokenId);
    if (last !== undefined && usedAtMs - last.usedAtMs < record.session.idleMs / NOTES_WHILE_IDLE) return;
    store.write((tx) => tx.put(sessionUses, { usedAtMs }, SYSTEM, tokenId));
  }

  /**
   * Returns the present role of an earlier caller; undefined when its token is no longer valid or its membership has
   * ended.
   */
  #roleNow({ tokenId, userId, workspaceId }: Principal): Role | undefined {
    return this.#isValidNow(tokenId) ? this.#memberNow(workspaceId, userId)?.role : undefined;
  }

  /** A token with a damaged record is not valid, because its expiry is unknown. */
  #isValidNow(tokenId: TokenId): boolean {
    const expiresAtMs = unlessDamaged(() => {
      const token = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
      if (token?.session !== undefined) this.onExpiring(this.#expiryOf(tokenId, token)); // a use of the session may have moved its expiry
      return token && this.#expiryOf(tokenId, token);
    });
    return expiresAtMs !== undefined && expiresAtMs > this.#identity.nowMs();
  }

  /** Returns when a token or a session expires, in milliseconds since 1970; 0 when a session has ended for another reason. */
  #expiryOf(tokenId: string, record: AccessTokenRecord): number {
    const { session, userId } = record;
    const { store } = this.#identity;
    const ownMs = expiryOf(record);
    const account = store.get(providerAccounts, SYSTEM, userId);
    if (account?.isActive === false) return 0;
    if (session === undefined) return ownMs;
    const { usedAtMs = 0 } = store.get(sessionUses, SYSTEM, tokenId) ?? {};
    const idleMs = usedAtMs + session.idleMs;
    if (session.signedInWith === null) {
      if (account === undefined || !this.#hasWorkspace(record)) return 0;
      return Math.min(ownMs, idleMs, account.checkedAtMs + MAX_UNCHECKED_MS);
    }
    const origin = store.get(accessTokenRecords, SYSTEM, session.signedInWith);
    if (origin === undefined || !this.#hasWorkspace(record)) return 0;
    return Math.min(ownMs, idleMs, expiryOf(origin));
  }

  /** Returns whether the user of a session is still a member of a workspace that the session can enter. */
  #hasWorkspace({ userId, workspaceId }: AccessTokenRecord): boolean {
    if (workspaceId !== null) return this.#member(workspaceId, userId) !== undefined;
    const { store } = this.#identity;
    for (const id of store.idsUnder(userWorkspaces, SYSTEM, userId))
      if (this.#member(id, userId)) return true;
    return false;
  }

  /**
   * Returns a test for callers: would the caller be admitted now, and may it do an action? A caller whose record is
   * damaged is not admitted. The function caches its look-ups, so use it at once and do not keep it.
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

  /** Renews a caller as `renewPrincipal` does. If the caller names no workspace, only the token is checked. */
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

  /**
   * Returns the holder of a token in a workspace, with the rights of a request that uses the token. Throws `unauthenticated` when
   * the token is no longer valid, and `not_found` when its holder is not a member.
   */
  holderOf(tokenId: TokenId, workspaceId: string): Principal {
    if (this.#revision !== this.#identity.revision) this.#forgetAll();
    const cached = this.#known.find(tokenId, workspaceId);
    const isCurrent = cached !== undefined && cached.expiresAtMs > this.#identity.nowMs();
    const caller = isCurrent ? cached : this.#lookHolder(tokenId, workspaceId);
    if (caller.isSession) this.#noteUse(tokenId); // the use of a page counts as use of the session that opened it
    return caller.principal;
  }

  readonly authorize = authorize;

  requirements(action: string): Requirements | undefined {
    return ACTIONS.get(action);
  }

  /** Returns whether the caller's token is bound to a workspace. */
  isBound({ tokenId }: Principal): boolean {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
    return record === undefined || !isUnbound(record);
  }

  /** Finds a caller in the store and keeps it for the next requests. */
  #look(digest: string, workspaceHeader: string): KnownCaller {
    const { tokenId, record: token, expiresAtMs } = this.#validToken(hashOfDigest(digest));
    if (workspaceHeader === '') {
      throw new AppError('missing_workspace', 'Name the workspace in the header Service-Workspace-Id.');
    }
    if (!PLAUSIBLE_WORKSPACE.test(workspaceHeader)) throw notFound();
    return this.#keep(digest, workspaceHeader, { tokenId, record: token, expiresAtMs });
  }

  /** Finds the holder of a token in the store and keeps it for the next requests. */
  #lookHolder(tokenId: TokenId, workspaceId: string): KnownCaller {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
    const expiresAtMs = record && unlessDamaged(() => this.#expiryOf(tokenId, record));
    if (record === undefined || expiresAtMs === undefined || expiresAtMs <= this.#identity.nowMs())
      throw unauthenticated();
    return this.#keep(tokenId, workspaceId, { tokenId, record, expiresAtMs });
  }

  /** `key` is the digest of the token, or its id. */
  #keep(key: string, workspaceId: string, { tokenId, record, expiresAtMs }: ValidToken): KnownCaller {
    const principal = this.#callerOf(tokenId, record, workspaceId);
    const caller = { principal, expiresAtMs, isSession: record.session !== undefined };
    this.#known.keep(key, workspaceId, caller);
    this.onExpiring(expiresAtMs);
    return caller;
  }

  #forgetAll(): void {
    this.#known.clear();
    this.#revision = this.#identity.revision;
  }

  #callerOf(tokenId: TokenId, token: AccessTokenRecord, workspaceId: string): Principal {
    if (token.workspaceId !== null && token.workspaceId !== workspaceId) throw notFound();
    const member = this.#member(workspaceId, token.userId);
    if (member === undefined) throw notFound();
    return Object.freeze({
      workspaceId: workspaceId as WorkspaceId,
      userId: token.userId as UserId,
      tokenId,
      role: member.role,
      scopes: Object.freeze([...token.scopes]),
    });
  }

  #validToken(hash: string): ValidToken {
    const { store } = this.#identity;
    const tokenId = store.get(tokenHashes, SYSTEM, hash);
    const record = tokenId === undefined ? undefined : store.get(accessTokenRecords, SYSTEM, tokenId);
    if (tokenId === undefined || record === undefined) throw unauthenticated();
    const expiresAtMs = this.#expiryOf(tokenId, record);
    if (expiresAtMs <= this.#identity.nowMs()) throw unauthenticated();
    // A token is no longer valid once the workspace to which it is bound is deleted.
    const { workspaceId } = record;
    if (workspaceId !== null && !workspaceExists(store, workspaceId)) throw unauthenticated();
    return { tokenId: tokenId as TokenId, record, expiresAtMs };
  }

  /** Returns the membership of a user in a workspace; undefined when the user is not a member, or the membership was deleted. */
  #member(workspaceId: string, userId: string): MemberRecord | undefined {
    const { store } = this.#identity;
    if (!workspaceExists(store, workspaceId)) return undefined;
    return store.get(memberRecords, workspaceId, userId);
  }

  /**
   * Returns the same as `#member`, but undefined when the record is damaged. The rights are then unknown, and an
   * error would stop the check of the remaining callers.
   */
  #memberNow(workspaceId: string, userId: string): MemberRecord | undefined {
    return unlessDamaged(() => this.#member(workspaceId, userId));
  }
}

function expiryOf({ expiresAt }: AccessTokenRecord): number {
  return expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
}

/** The error is the same for a token that is missing, malformed, unknown, expired or revoked. */
function unauthenticated(): AppError {
  return new AppError('unauthenticated', 'Send a valid access token as Authorization: Bearer <token>.');
}
