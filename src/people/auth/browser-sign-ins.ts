/**
 * The sessions of people in browsers. A person signs in with an access token, which is exchanged for a session with
 * the same rights. The session's secret is in a cookie and is stored as a hash only. A session is stored like a
 * token, so its end stops everything that the end of a token would stop.
 */

import type { TokenHolder } from '#src/base/caller/principal.ts';
import type { Secret } from '#src/base/caller/secret.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { newId, type TokenId, type UserId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Scope } from '#src/contract/wire/identity.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  accessTokenRecords,
  memberRecords,
  sessionUses,
  tokenHashes,
  userSessions,
  userWorkspaces,
} from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Identity } from './identity.ts';
import { newSignInSecret, signInHash } from './token-secret.ts';
import { removeToken } from './tokens.ts';

/** The most sign-ins of a user. A further sign-in ends the oldest. */
export const MAX_SESSIONS_PER_USER = 50;

/** The scopes of people who sign in with the identity provider: all scopes for a workspace. */
const PERSON_SCOPES: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];

/** The start and the end of a session are noted in the audit of at most this many workspaces of the user. */
const MAX_NOTED_WORKSPACES = 20;

/** The lifetimes of sign-ins, in seconds. */
export interface SignInLifetimes {
  /** A sign-in ends after this time without use. */
  readonly signInIdleS: number;
  /** Every sign-in ends this long after its start. */
  readonly signInMaxS: number;
}

/** A sign-in that has begun. */
export interface BegunBrowserSignIn {
  readonly id: TokenId;
  readonly secret: Secret;
}

export class BrowserSignIns {
  readonly #identity: Identity;
  readonly #lifetimes: SignInLifetimes;

  constructor(identity: Identity, lifetimes: SignInLifetimes) {
    this.#identity = identity;
    this.#lifetimes = lifetimes;
  }

  /** The longest duration of a sign-in, in seconds. */
  get maxS(): number {
    return this.#lifetimes.signInMaxS;
  }

  /**
   * Begins a session for the holder of an access token. Call it in a shared turn. Throws `invalid_request` for the
   * holder of a session. Throws `no_workspace` when the user is not a member of any workspace that the token can
   * enter.
   */
  begin({ tokenId, userId }: TokenHolder): BegunBrowserSignIn {
    const { store } = this.#identity;
    const token = store.get(accessTokenRecords, SYSTEM, tokenId);
    if (token === undefined) throw new AppError('unauthenticated', 'The access token was revoked.');
    if (token.session !== undefined)
      throw new AppError(
        'invalid_request',
        'Sign in with an access token, not with the cookie of a sign-in.',
      );
    if (this.workspacesOf({ tokenId, userId }).length === 0)
      throw new AppError('no_workspace', 'Ask an owner of a workspace to add you as a member.');
    return this.#put(userId, token.workspaceId, token.scopes, tokenId);
  }

  /** Begins a sign-in for a person of the identity provider, in every workspace of the user. Call it in a shared turn. */
  beginForPerson(userId: UserId): BegunBrowserSignIn {
    return this.#put(userId, null, PERSON_SCOPES, null);
  }

  #put(
    userId: string,
    workspaceId: string | null,
    scopes: readonly Scope[],
    signedInWith: TokenId | null,
  ): BegunBrowserSignIn {
    const { signInIdleS, signInMaxS } = this.#lifetimes;
    const secret = newSignInSecret();
    const hash = signInHash(secret.reveal())!;
    const id = newId<TokenId>('token');
    const nowMs = this.#identity.nowMs();
    this.#identity.write((tx) => {
      this.#prune(tx, userId);
      const record = {
        hash,
        name: 'Browser session',
        userId,
        workspaceId,
        scopes,
        createdAt: timestamp(nowMs),
        createdBy: userId,
        expiresAt: timestamp(nowMs + signInMaxS * 1000),
        session: { signedInWith, idleMs: signInIdleS * 1000 },
      };
      tx.put(accessTokenRecords, record, SYSTEM, id);
      tx.put(tokenHashes, id, SYSTEM, hash);
      tx.mark(userSessions, SYSTEM, userId, id);
      tx.put(sessionUses, { usedAtMs: nowMs }, SYSTEM, id);
    });
    return { id, secret };
  }

  /** Returns whether the holder is a person who signed in with the identity provider. */
  isOfPerson({ tokenId }: Pick<TokenHolder, 'tokenId'>): boolean {
    return this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId)?.session?.signedInWith === null;
  }

  /** Ends the holder's sign-in at once. Throws `invalid_request` for the holder of an access token. */
  end({ tokenId }: TokenHolder): void {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
    if (record === undefined) return;
    if (record.session === undefined)
      throw new AppError(
        'invalid_request',
        'You are not signed in with a browser. To end an access token, revoke it.',
      );
    this.#identity.write((tx) => removeToken(tx, tokenId));
  }

  /**
   * Ends all sign-ins of the user at once, including the holder's. A sign-in that is bound to a workspace ends only
   * sign-ins that are bound to the same workspace, because a sign-in with fewer rights must not manage one with more.
   * Throws as `end` does.
   */
  endAll(holder: TokenHolder): void {
    const { store } = this.#identity;
    const own = store.get(accessTokenRecords, SYSTEM, holder.tokenId);
    this.end(holder);
    if (own === undefined) return;
    this.#identity.write((tx) => {
      for (const id of store.idsUnder(userSessions, SYSTEM, holder.userId))
        removeToken(tx, id, ({ workspaceId }) => own.workspaceId === null || workspaceId === own.workspaceId);
    });
  }

  /** Returns the ids of the first workspaces that a caller can enter, in which the audit notes the start and end of sign-ins. */
  workspacesOf({ tokenId, userId }: Pick<TokenHolder, 'tokenId' | 'userId'>): string[] {
    const { store } = this.#identity;
    const bound = store.get(accessTokenRecords, SYSTEM, tokenId)?.workspaceId ?? null;
    return [...store.idsUnder(userWorkspaces, SYSTEM, userId)]
      .filter((id) => (bound === null || bound === id) && store.has(memberRecords, id, userId))
      .slice(0, MAX_NOTED_WORKSPACES);
  }

  /** Removes the user's expired sign-ins, and the oldest ones beyond the limit. */
  #prune(tx: Transaction, userId: string): void {
    const { store } = this.#identity;
    const nowMs = this.#identity.nowMs();
    const living: { readonly id: string; readonly beganAt: string }[] = [];
    for (const id of store.idsUnder(userSessions, SYSTEM, userId)) {
      const record = unlessDamaged(() => store.get(accessTokenRecords, SYSTEM, id));
      const { usedAtMs = 0 } = unlessDamaged(() => store.get(sessionUses, SYSTEM, id)) ?? {};
      const endsAtMs = Math.min(
        Date.parse(record?.expiresAt ?? ''),
        usedAtMs + (record?.session?.idleMs ?? Number.NaN),
      );
      const origin = record?.session?.signedInWith ?? null;
      const isValid = endsAtMs > nowMs && (origin === null || store.has(accessTokenRecords, SYSTEM, origin));
      if (record !== undefined && isValid) living.push({ id, beganAt: record.createdAt });
      else this.#remove(tx, userId, id);
    }
    living.sort((a, b) => (a.beganAt < b.beganAt ? -1 : 1));
    for (const { id } of living.slice(0, Math.max(0, living.length - MAX_SESSIONS_PER_USER + 1)))
      this.#remove(tx, userId, id);
  }

  #remove(tx: Transaction, userId: string, id: string): void {
    removeToken(tx, id);
    tx.remove(userSessions, SYSTEM, userId, id); // goes even when the token's record is damaged
  }
}
