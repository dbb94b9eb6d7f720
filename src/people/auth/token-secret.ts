import { hash, randomBytes } from 'node:crypto';
import { Secret } from '#src/base/caller/secret.ts';

const RANDOM_BYTES = 32;

/**
 * The form of every bearer token, both of generated tokens and of tokens that operators choose for the first
 * start.
 */
const PLAUSIBLE = /^[\x21-\x7e]+$/;
const MIN_LENGTH = 16;
const MAX_LENGTH = 256;

/** Returns a new token: `trp_` and 256 random bits. */
export function newTokenSecret(): Secret {
  return new Secret(`trp_${randomBytes(RANDOM_BYTES).toString('base64url')}`);
}

/**
 * Returns the hash that is stored and looked up instead of the token. Tokens are never compared: finding the hash is the
 * proof. The time of the lookup depends on the hash alone, which an attacker cannot choose.
 */
export function tokenHash(token: string): string {
  return hash('sha256', token, 'hex');
}

/** Returns the bytes of `tokenHash` as a string of as many characters, which takes less time to make and to look up. */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'binary');
}

/** Returns the `tokenHash` with these bytes. */
export function hashOfDigest(digest: string): string {
  return Buffer.from(digest, 'binary').toString('hex');
}

/** Returns a new secret of a browser's session: `trs_` and 256 random bits. */
export function newSignInSecret(): Secret {
  return new Secret(`trs_${randomBytes(RANDOM_BYTES).toString('base64url')}`);
}

const SESSION_SECRET = /^trs_[\w-]{43}$/;

/**
 * Returns the digest of the secret in a session's cookie; undefined for a text of another form. No access token has this digest,
 * because the hashed text contains a space, so a session cannot be used as a token, nor a token in a cookie.
 */
export function sessionDigest(secret: string): string | undefined {
  return SESSION_SECRET.test(secret) ? tokenDigest(`session ${secret}`) : undefined;
}

/** Returns the hash that is stored for the secret of a session; undefined as `sessionDigest` does. */
export function signInHash(secret: string): string | undefined {
  const digest = sessionDigest(secret);
  return digest && hashOfDigest(digest);
}

/** Returns the token in an `Authorization` header; undefined when the header has none of the right form. */
export function bearerToken(header: string): string | undefined {
  const scheme = header.slice(0, 7);
  if (scheme !== 'Bearer ' && scheme.toLowerCase() !== 'bearer ') return undefined;
  const token = header.slice(7).trimStart();
  const { length } = token; // not in the pattern, where a count cost a GET of a notebook 8 % more time
  return length >= MIN_LENGTH && length <= MAX_LENGTH && PLAUSIBLE.test(token) ? token : undefined;
}
