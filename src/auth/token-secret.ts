import { hash, randomBytes } from 'node:crypto';
import { Secret } from '#src/core/secret.ts';

const RANDOM_BYTES = 32;

/** What a bearer token can look like at all: ours, and those an operator chooses for the first start. */
const PLAUSIBLE = /^[\x21-\x7e]{16,256}$/;

/** A new token: `trp_` and 256 random bits. */
export function newTokenSecret(): Secret {
  return new Secret(`trp_${randomBytes(RANDOM_BYTES).toString('base64url')}`);
}

/**
 * What is stored and looked up instead of the token. Nothing ever compares tokens: finding the hash is the proof, and
 * how long that takes tells about the hash only, which nobody can steer.
 */
export function tokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}

/** The token in an `Authorization` header, or undefined when there is none that could be one. */
export function bearerToken(header: string): string | undefined {
  const scheme = header.slice(0, 7);
  if (scheme !== 'Bearer ' && scheme.toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7).trimStart();
  return PLAUSIBLE.test(token) ? token : undefined;
}
