/** Access tokens. A token itself is returned only once, when it is created; only its hash is stored. */

import type { Principal } from '#src/base/caller/principal.ts';
import type { Secret } from '#src/base/caller/secret.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { isIdOf, type TokenId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AccessToken, NewAccessToken } from '#src/contract/wire/identity.ts';
import { DAMAGED, readOrDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Entry } from '#storage/lists/committed-records.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { checkCursor, listingOf, mergedEntries, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import {
  type AccessTokenRecord,
  accessTokenRecords,
  isUnbound,
  memberRecords,
  sessionUses,
  tokenHashes,
  userSessions,
  userTokens,
  workspaceTokens,
} from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Identity } from './identity.ts';
import { roleTooLow } from './permissions.ts';
import { newTokenSecret, tokenHash } from './token-secret.ts';

/** Access tokens: creating, reading and revoking them. */
const DAY_MS = 86_400_000;

export class AccessTokens {
  readonly #identity: Identity;
  readonly #maxAgeMs: number;

  /**
   * New tokens expire after `maxAgeDays` at the latest. 0 means no limit: a token then expires only if its request
   * sets an expiry.
   */
  constructor(identity: Identity, maxAgeDays = 0) {
    this.#identity = identity;
    this.#maxAgeMs = maxAgeDays === 0 ? Number.POSITIVE_INFINITY : maxAgeDays * DAY_MS;
  }

  /**
   * Creates a token and returns its secret. A token for the caller is bound to the workspace if the token of the
   * request is bound to it, or if the caller signed in with the identity provider. A token for another member, which
   * only an owner can create, is bound to the workspace. Throws `role_too_low`, `missing_scope` for scopes that the
   * token of the request lacks, `not_found` for an unknown member, and `invalid_request` for an expiry in the past or
   * beyond the longest life of tokens.
   */
  create(
    principal: Principal,
    request: NewAccessToken,
  ): { readonly token: AccessToken; readonly secret: Secret } {
    this.checkCreation(principal, request);
    const { userId = principal.userId } = request;
    const forOther = userId !== principal.userId;
    const { store } = this.#identity;
    if (store.get(memberRecords, principal.workspaceId, userId) === undefined) throw notFound('/userId');
    const token: AccessToken = {
      id: this.#newId(principal.workspaceId, userId),
      name: request.name,
      userId,
      workspaceId: forOther || !this.#isUnbound(principal) ? principal.workspaceId : null,
      scopes: request.scopes,
      createdAt: this.#identity.timestamp(),
      createdBy: principal.userId,
      expiresAt: this.#expiryOf(request),
    };
    const secret = newTokenSecret();
    this.#identity.write((tx) => putToken(tx, token, secret));
    return { token, secret };
  }

  /** Throws `role_too_low` or `missing_scope` when the caller may not create this token. */
  checkCreation(principal: Principal, request: NewAccessToken): void {
    const { userId, role, scopes } = principal;
    const forOther = request.userId !== undefined && request.userId !== userId;
    if (forOther && role !== 'owner') throw roleTooLow(role, 'owner');
    const lacking = request.scopes.find(
      (scope) => !scopes.includes(scope) && !(scope.startsWith('server:') && this.#isOperator(principal)),
    );
    if (lacking === undefined) return;
    throw new AppError(
      'missing_scope',
      `You cannot give the scope ${lacking}, because your access token does not have it.`,
    );
  }

  /** Returns a token. Throws `not_found`, also for a token that the caller may not see. */
  read(principal: Principal, id: string): AccessToken {
    const token = this.#visible(principal, id);
    if (token === undefined) throw notFound();
    return token;
  }

  /** Returns a page of the tokens that the caller may see, oldest first. Throws `invalid_cursor`. */
  list(principal: Principal, { after, limit }: PageRequest): Listing<AccessToken> {
    checkCursor(after, (text) => isIdOf('token', text));
    return listingOf(this.#listVisible(principal, after), limit, (token) => token);
  }

  /** Revokes a token, at once. Throws `not_found` as `read` does. */
  revoke(principal: Principal, id: string): void {
    if (this.#visible(principal, id) === undefined) throw notFound();
    this.#identity.write((tx) => removeToken(tx, id));
  }

  /**
   * Returns a token that the caller may see. A token that is bound to this workspace is visible to its user and to
   * owners. An unbound token is visible to its user only, and only if the token of the request is unbound, too. A
   * token with fewer rights must not manage one with more.
   */
  #visible(principal: Principal, id: string): AccessToken | undefined {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, id);
    if (record === undefined) return undefined;
    const isOwn = record.userId === principal.userId;
    const isKnown =
      record.workspaceId === null
        ? isOwn && this.#boundTo(principal) === null
        : record.workspaceId === principal.workspaceId && (isOwn || principal.role === 'owner');
    return isKnown ? shown(id, record) : undefined;
  }

  *#listVisible(principal: Principal, after: string | undefined): Generator<Entry<AccessToken | undefined>> {
    const { store } = this.#identity;
    const page = pageOf({ after });
    const bound = store.list(workspaceTokens, principal.workspaceId, [], page);
    const free = store.list(userTokens, SYSTEM, [principal.userId], page);
    for (const { id } of mergedEntries<unknown>(bound, free))
      yield { id, value: this.#visible(principal, id) };
  }

  /**
   * Returns whether the caller may grant the scopes for the whole server, which also allow rotating the keyring. In a
   * store that is older than these scopes, no token has them.
   */
  #isOperator(principal: Principal): boolean {
    return principal.role === 'owner' && this.#isUnbound(principal);
  }

  /** Several workers create tokens of one user. */
  #newId(workspaceId: string, userId: string): TokenId {
    return newListedId(this.#identity.store, 'token', [
      { kind: userTokens, partition: SYSTEM, prefix: [userId] },
      { kind: workspaceTokens, partition: workspaceId },
    ]);
  }

  #isUnbound({ tokenId }: Principal): boolean {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
    if (record === undefined) throw notFound(); // as in `#boundTo`
    return isUnbound(record);
  }

  /** Returns the time in this many days, or the end of the longest life of a token if that comes first. */
  expiryWithin(days: number): string {
    return timestamp(this.#identity.nowMs() + Math.min(days * DAY_MS, this.#maxAgeMs));
  }

  #boundTo({ tokenId }: Principal): string | null {
    const record = this.#identity.store.get(accessTokenRecords, SYSTEM, tokenId);
    if (record === undefined) throw notFound(); // The token was revoked after the request was admitted.
    return record.workspaceId;
  }

  /**
   * Returns the time at which the token expires. Without a requested time, it expires at the end of the longest life.
   */
  #expiryOf({ expiresAt }: NewAccessToken): string | null {
    const latestMs = this.#identity.nowMs() + this.#maxAgeMs;
    if (expiresAt == null) return latestMs === Number.POSITIVE_INFINITY ? null : timestamp(latestMs);
    const text = this.#futureTimestamp(expiresAt);
    if (Date.parse(text) <= latestMs) return text;
    const days = this.#maxAgeMs / DAY_MS;
    throw new AppError('invalid_request', `On this server, tokens live for ${days} days at most.`, {
      errors: [{ path: '/expiresAt', message: `must be within ${days} days` }],
    });
  }

  #futureTimestamp(text: string): string {
    const ms = Date.parse(text);
    if (ms > this.#identity.nowMs()) return timestamp(ms);
    throw new AppError('invalid_request', 'A token cannot expire in the past.', {
      errors: [{ path: '/expiresAt', message: 'must be in the future' }],
    });
  }
}

/** Stores a token and its indexes. */
export function putToken(tx: Transaction, { id, ...token }: AccessToken, secret: Secret): void {
  const hash = tokenHash(secret.reveal());
  const record: AccessTokenRecord = { hash, ...token };
  tx.put(accessTokenRecords, record, SYSTEM, id);
  tx.put(tokenHashes, id, SYSTEM, hash);
  if (token.workspaceId === null) tx.mark(userTokens, SYSTEM, token.userId, id);
  else tx.mark(workspaceTokens, token.workspaceId, id);
}

/**
 * Deletes a token and its index entries, if it exists and `applies` returns true for it. A token with a damaged record is always
 * deleted: it admits no caller, and its owner is unknown. `boundTo` is the workspace in whose index the token was found.
 */
export function removeToken(
  tx: Transaction,
  id: string,
  applies: (record: AccessTokenRecord) => boolean = () => true,
  boundTo?: string,
): void {
  const record = readOrDamaged(() => tx.get(accessTokenRecords, SYSTEM, id));
  if (record === DAMAGED) {
    tx.remove(accessTokenRecords, SYSTEM, id);
    if (boundTo !== undefined) tx.remove(workspaceTokens, boundTo, id);
    return;
  }
  if (record === undefined || !applies(record)) return;
  tx.remove(accessTokenRecords, SYSTEM, id);
  tx.remove(tokenHashes, SYSTEM, record.hash);
  if (record.session !== undefined) {
    tx.remove(userSessions, SYSTEM, record.userId, id);
    tx.remove(sessionUses, SYSTEM, id);
  } else if (record.workspaceId === null) tx.remove(userTokens, SYSTEM, record.userId, id);
  else tx.remove(workspaceTokens, record.workspaceId, id);
}

function shown(id: string, { hash: _, session: __, ...record }: AccessTokenRecord): AccessToken {
  return { id, ...record };
}
