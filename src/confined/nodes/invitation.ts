/**
 * Invitations: `HOST:PORT#CODE`. The code holds a secret that works once, and the digest of the server's certificate
 * authority, by which a machine knows that it has reached this server and no other.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { invariant } from '#src/base/errors/invariant.ts';

const SECRET_BYTES = 16;
const DIGEST_BYTES = 32;
const LIFETIME_MS = 15 * 60_000;
const MAX_OPEN = 1000;
const ADDRESS = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/;
const CODE = /^[A-Za-z0-9_-]{64}$/;

/** An invitation as a machine reads it. */
export interface Invitation {
  readonly host: string;
  readonly port: number;
  readonly secret: Buffer;
  /** SHA-256 of the DER form of the authority's certificate. */
  readonly authority: Buffer;
}

/** Returns the parts of an invitation; undefined when the text is not an invitation. */
export function parseInvitation(text: string): Invitation | undefined {
  const [addressText = '', code = '', ...rest] = text.trim().split('#');
  const address = parseNodeAddress(addressText);
  if (address === undefined || rest.length > 0 || !CODE.test(code)) return undefined;
  const bytes = Buffer.from(code, 'base64url');
  return { ...address, secret: bytes.subarray(0, SECRET_BYTES), authority: bytes.subarray(SECRET_BYTES) };
}

/** Reads `HOST:PORT`. Returns undefined when the text has another form. */
export function parseNodeAddress(text: string): { readonly host: string; readonly port: number } | undefined {
  const [, host, digits] = ADDRESS.exec(text) ?? [];
  const port = Number(digits);
  if (host === undefined || port > 65_535 || port === 0) return undefined;
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port };
}

/** The unused invitations. They are in memory only, so a restart of the server ends them. */
export class Invitations {
  readonly #authority: Buffer;
  /** By the digest of the secret. The oldest first. */
  readonly #open = new Map<string, { readonly endsAtMs: number; readonly name: string | undefined }>();

  /** `authority` is the digest that every code contains. */
  constructor(authority: Buffer) {
    invariant(authority.length === DIGEST_BYTES, 'The digest of an authority has 32 bytes.');
    this.#authority = authority;
  }

  /**
   * Returns a new code, and the time at which it ends. When too many invitations are open, the oldest one
   * ends. `name` is the name that the node gets; without `name` the node names itself.
   */
  make(now = Date.now(), name?: string): { readonly code: string; readonly expiresAt: string } {
    const secret = randomBytes(SECRET_BYTES);
    this.#open.set(digestOf(secret), { endsAtMs: now + LIFETIME_MS, name });
    const [oldest] = this.#open.keys();
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
    return {
      code: Buffer.concat([secret, this.#authority]).toString('base64url'),
      expiresAt: new Date(now + LIFETIME_MS).toISOString(),
    };
  }

  /**
   * Ends the open invitation with this secret, and returns the name that the invitation gives. Returns
   * undefined without such an invitation.
   */
  use(secret: string, now = Date.now()): { readonly name: string | undefined } | undefined {
    const digest = digestOf(Buffer.from(secret, 'base64url'));
    const found = this.#open.get(digest);
    this.#open.delete(digest);
    return found !== undefined && now < found.endsAtMs ? { name: found.name } : undefined;
  }
}

/** The table is searched by digest, so that the time of a search says nothing about a secret. */
function digestOf(secret: Buffer): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Returns whether `certificate` (DER) has this SHA-256 digest. */
export function hasDigest(certificate: Buffer, digest: Buffer): boolean {
  return timingSafeEqual(createHash('sha256').update(certificate).digest(), digest);
}
