/**
 * Sign-ins of command lines: a person confirms one in a browser, and the command line then gets an access token of
 * that person. This is the device flow of RFC 8628, which this server serves itself. The command line has a secret with
 * which it asks for the outcome, and the person types a short code. Secret and code are stored and looked up by their
 * hashes, so the duration of a comparison reveals nothing about a secret.
 */
import { randomBytes, randomInt } from 'node:crypto';
import type { Principal } from '#src/base/caller/principal.ts';
import type { Secret } from '#src/base/caller/secret.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { TokenId } from '#src/base/ids.ts';
import { networkOf } from '#src/base/net/ip-address.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AccessToken, Scope } from '#src/contract/wire/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  type CommandLineSignIn,
  commandLineCodes,
  commandLineSignIns,
} from '#storage/records/command-line-sign-ins.ts';
import type { Authenticator } from './authenticator.ts';
import type { Identity } from './identity.ts';
import { tokenHash } from './token-secret.ts';
import type { AccessTokens } from './tokens.ts';

/** How long a person has to confirm. */
const LIFE_MS = 10 * 60_000;
/** The most sign-ins that wait at once, in the server and from one address. */
const MAX_WAITING = 1000;
const MAX_WAITING_PER_ADDRESS = 10;
/** Consonants that are hard to confuse, so that codes form no words; a code has 25 thousand million possible values. */
const LETTERS = 'BCDFGHJKLMNPQRSTVWXZ';
const CODE_LETTERS = 8;
/** The life of the token. `TROUPE_TOKEN_MAX_AGE_DAYS` may shorten it. */
const TOKEN_DAYS = 90;
/** The scopes of the token, without those that the person lacks. */
const SCOPES: readonly Scope[] = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];

/** The program that waits for a sign-in. */
export interface Asking {
  /** The name of the program's machine, which the program has sent. */
  readonly machine: string;
  readonly address: string;
}

/** A sign-in that has begun. */
export interface BegunSignIn {
  readonly secret: string;
  readonly code: string;
  readonly expiresAt: string;
}

/** The outcome for the program. `ended`: the sign-in has expired, or its token was fetched. */
export type SignInOutcome =
  | { readonly status: 'waiting' | 'refused' | 'ended' }
  | {
      readonly status: 'confirmed';
      readonly token: AccessToken;
      readonly secret: Secret;
      readonly workspaceId: string;
      readonly principal: Principal;
    };

/**
 * Sign-ins of command lines. Call every method that changes something in a shared turn, because several workers decide about the
 * same codes.
 */
export class CommandLineSignIns {
  readonly #identity: Identity;
  readonly #authenticator: Authenticator;
  readonly #tokens: AccessTokens;

  constructor(identity: Identity, authenticator: Authenticator, tokens: AccessTokens) {
    this.#identity = identity;
    this.#authenticator = authenticator;
    this.#tokens = tokens;
  }

  /** Begins a sign-in. Throws `too_many_attempts` when too many wait. */
  begin({ machine, address }: Asking): BegunSignIn {
    const { store } = this.#identity;
    const nowMs = this.#identity.nowMs();
    const network = networkOf(address);
    const waiting = [...store.idsUnder(commandLineSignIns, SYSTEM)].flatMap((id) => {
      const value = store.get(commandLineSignIns, SYSTEM, id);
      return value === undefined ? [] : [{ id, value }];
    });
    const [over, open] = [
      waiting.filter(({ value }) => value.expiresAtMs <= nowMs),
      waiting.filter(({ value }) => value.expiresAtMs > nowMs),
    ];
    const ofAddress = open.filter(({ value }) => value.network === network).length;
    if (open.length >= MAX_WAITING || ofAddress >= MAX_WAITING_PER_ADDRESS)
      throw new AppError('too_many_attempts', 'Too many command lines are waiting to be confirmed.', {
        headers: { 'retry-after': '60' },
      });
    const secret = `trd_${randomBytes(32).toString('base64url')}`;
    const letters = Array.from({ length: CODE_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join('');
    const code = `${letters.slice(0, 4)}-${letters.slice(4)}`;
    const expiresAtMs = nowMs + LIFE_MS;
    store.write((tx) => {
      for (const { id, value } of over) {
        tx.remove(commandLineSignIns, SYSTEM, id);
        tx.remove(commandLineCodes, SYSTEM, value.codeHash);
      }
      const [id, codeHash] = [tokenHash(secret), hashOfCode(code)];
      const record = {
        codeHash,
        machine,
        address,
        network,
        expiresAtMs,
        confirmedBy: null,
        isRefused: false,
      };
      tx.put(commandLineSignIns, record, SYSTEM, id);
      tx.put(commandLineCodes, id, SYSTEM, codeHash);
    });
    return { secret, code, expiresAt: timestamp(expiresAtMs) };
  }

  /**
   * Returns the program that waits with this code. Throws `not_found` when no program waits, or a person has
   * already confirmed or refused it.
   */
  read(code: string): Asking & { readonly expiresAt: string } {
    const [, { machine, address, expiresAtMs }] = this.#waiting(code);
    return { machine, address, expiresAt: timestamp(expiresAtMs) };
  }

  /** Confirms or refuses a sign-in, once. Throws `not_found` as `read` does. */
  decide(principal: Principal, code: string, isConfirmed: boolean): void {
    const [id, record] = this.#waiting(code);
    const { tokenId, workspaceId } = principal;
    this.#identity.store.write((tx) => {
      const confirmedBy = isConfirmed ? { tokenId, workspaceId } : null;
      tx.put(commandLineSignIns, { ...record, confirmedBy, isRefused: !isConfirmed }, SYSTEM, id);
      tx.remove(commandLineCodes, SYSTEM, record.codeHash);
    });
  }

  /**
   * Returns the outcome for the program with this secret. The token is made here and returned once, so it is never stored. It has
   * the present rights of the person who confirmed.
   */
  fetch(secret: string): SignInOutcome {
    const identity = this.#identity;
    const authenticator = this.#authenticator;
    const tokens = this.#tokens;
    const { store } = identity;
    const id = tokenHash(secret);
    const record = store.get(commandLineSignIns, SYSTEM, id);
    if (record === undefined || record.expiresAtMs <= identity.nowMs()) return { status: 'ended' };
    const { confirmedBy } = record;
    if (confirmedBy === null && !record.isRefused) return { status: 'waiting' };
    store.write((tx) => tx.remove(commandLineSignIns, SYSTEM, id));
    if (confirmedBy === null) return { status: 'refused' };
    const principal = this.#unlessGone(() =>
      authenticator.holderOf(confirmedBy.tokenId as TokenId, confirmedBy.workspaceId),
    );
    if (principal === undefined) return { status: 'ended' };
    const { token, secret: made } = tokens.create(principal, {
      name: `Command line on ${record.machine}`,
      scopes: SCOPES.filter((scope) => principal.scopes.includes(scope)),
      expiresAt: tokens.expiryWithin(TOKEN_DAYS),
    });
    return { status: 'confirmed', token, secret: made, workspaceId: confirmedBy.workspaceId, principal };
  }

  /** Returns undefined when the session or the membership of the person who confirmed has ended. */
  #unlessGone(find: () => Principal): Principal | undefined {
    try {
      return find();
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  #waiting(code: string): [id: string, record: CommandLineSignIn] {
    const { store } = this.#identity;
    const id = store.get(commandLineCodes, SYSTEM, hashOfCode(code));
    const record = id === undefined ? undefined : store.get(commandLineSignIns, SYSTEM, id);
    const isWaiting = record !== undefined && record.expiresAtMs > this.#identity.nowMs();
    if (id === undefined || !isWaiting) throw notFound();
    return [id, record];
  }
}

/** Returns the hash of a typed code; case, spaces and a missing hyphen make no difference. */
function hashOfCode(code: string): string {
  return tokenHash(`code ${code.toUpperCase().replace(/[^A-Z]/g, '')}`);
}
