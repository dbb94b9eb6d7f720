import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  allows,
  type PageAccess,
  type PageCredential,
  PUBLIC_CODE_LIFE_MS,
  type SentPageCredential,
} from '#src/base/caller/page-access.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { TokenId } from '#src/base/ids.ts';
import type { Authenticator } from './authenticator.ts';
import { reaches } from './permissions.ts';

/** The keys of the server. Pages are signed with a key derived from the active one. */
export interface PageKeys {
  readonly active: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

/** The caller who opens a page, and the access that the page gets. */
interface PageGrant {
  readonly principal: Principal;
  readonly notebookId: string;
  readonly access: PageAccess;
}

interface Claims {
  readonly tokenId: string;
  readonly workspaceId: string;
  readonly notebookId: string;
  readonly access: PageAccess;
  readonly expiresAtMs: number;
  readonly nonce: string;
}

const LIFE_MS: Readonly<Record<PageCredential, number>> = {
  code: 60_000,
  cookie: 12 * 3_600_000,
  page: 12 * 3_600_000,
  public: PUBLIC_CODE_LIFE_MS,
};
const MAX_USED_CODES = 10_000;

/**
 * The credentials of notebooks' pages. Each is for one notebook and one kind of access. It is valid as long as the
 * access token with which the page was opened, and as long as the holder of that token is a member. Credentials are
 * signed and not stored, so a page survives a restart of the server. Only the use of one-time addresses is
 * remembered, in the notebook's home.
 */
export class PageTokens {
  readonly #authenticator: Authenticator;
  readonly #keys: (keyId?: string) => PageKeys;
  /** Used codes by their nonce, with the time at which they expire, oldest first. */
  readonly #used = new Map<string, number>();

  /** `keys` returns the present keys; with `id`, keys that include that one, which another process may have just added. */
  constructor(authenticator: Authenticator, keys: (keyId?: string) => PageKeys) {
    this.#authenticator = authenticator;
    this.#keys = keys;
  }

  issue(kind: PageCredential, { principal, notebookId, access }: PageGrant, nowMs = Date.now()) {
    const expiresAtMs = nowMs + LIFE_MS[kind];
    const claims: Claims = {
      tokenId: principal.tokenId,
      workspaceId: principal.workspaceId,
      notebookId,
      access,
      expiresAtMs,
      nonce: randomBytes(12).toString('base64url'),
    };
    const { active, keys } = this.#keys();
    const key = keys.get(active);
    invariant(key !== undefined, 'A keyring has its active key.', active);
    const text = `${kind}.${active}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
    return { text: `${text}.${sign(key, text).toString('base64url')}`, expiresAtMs };
  }

  /**
   * Returns the caller who opened the page, with the present rights, and the page's access. The call uses up a
   * one-time code. Throws `unauthenticated` when the credential is not valid for this notebook, has expired, or its
   * access token is no longer valid. Also throws the errors that a request of the caller would get.
   */
  principalOf({ kind, text, notebookId }: SentPageCredential, nowMs: number = Date.now()): Principal {
    const claims = this.#claimsOf(kind, text);
    if (claims === undefined || claims.notebookId !== notebookId || claims.expiresAtMs <= nowMs)
      throw refused();
    const principal = this.#authenticator.holderOf(claims.tokenId as TokenId, claims.workspaceId);
    const pageAccess = lower(claims.access, highestAccess(principal));
    return Object.freeze({ ...principal, pageAccess });
  }

  /** Returns the access that a page of this caller gets: as requested, but not above the caller's role. */
  accessOf(principal: Principal, asked: PageAccess | undefined): PageAccess {
    const most = highestAccess(principal);
    return asked === undefined ? most : lower(asked, most);
  }

  /** Marks a code as used. Throws `unauthenticated` when it was used before. Called in the notebook's home only. */
  use(text: string, nowMs: number = Date.now()): void {
    const claims = this.#claimsOf('code', text);
    for (const [nonce, expiresAtMs] of this.#used) {
      if (expiresAtMs > nowMs && this.#used.size < MAX_USED_CODES) break;
      this.#used.delete(nonce);
    }
    if (claims === undefined || this.#used.has(claims.nonce)) throw refused();
    this.#used.set(claims.nonce, claims.expiresAtMs);
  }

  #claimsOf(kind: PageCredential, text: string): Claims | undefined {
    const parts = text.length > 2000 ? [] : text.split('.');
    const [given, keyId, payload, signature] = parts;
    if (parts.length !== 4 || given !== kind) return undefined;
    if (keyId === undefined || payload === undefined || signature === undefined) return undefined;
    const key = this.#keys(keyId).keys.get(keyId);
    if (key === undefined) return undefined;
    const sent = Buffer.from(signature, 'base64url');
    const expected = sign(key, `${kind}.${keyId}.${payload}`);
    if (sent.byteLength !== expected.byteLength || !timingSafeEqual(sent, expected)) return undefined;
    return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims; // signed by this server
  }
}

function sign(key: Uint8Array, text: string): Buffer {
  const derived = hkdfSync('sha256', key, '', 'troupe notebook pages', 32);
  return createHmac('sha256', Buffer.from(derived)).update(text).digest();
}

/** Returns the highest access that a page of this caller may have. */
function highestAccess({ role }: Principal): PageAccess {
  return reaches(role, 'editor') ? 'edit' : 'view';
}

/** Returns the lower of two accesses. */
function lower(one: PageAccess, other: PageAccess): PageAccess {
  return allows(one, other) ? other : one;
}

function refused(): AppError {
  return new AppError(
    'unauthenticated',
    'The address of this page was used already, or the page has expired. Open the notebook again.',
  );
}
