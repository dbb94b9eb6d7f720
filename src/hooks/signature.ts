/**
 * Secrets and signatures after the Standard Webhooks text: https://github.com/standard-webhooks/standard-webhooks. A signature is the
 * HMAC-SHA256 of the message's id, its time in seconds since 1970 and its body, joined by dots.
 */

import { createHmac, randomBytes } from 'node:crypto';

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** Returns a new secret: `whsec_` and 256 random bits in base64. */
export function newHookSecret(): string {
  return `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** Returns the signature of a message, such as `v1,…`. */
export function signatureOf(
  secret: string,
  id: string,
  timestampS: string,
  body: string | Uint8Array,
): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64'); // the prefix is ASCII
  const mac = createHmac('sha256', key).update(`${id}.${timestampS}.`).update(body);
  return `v1,${mac.digest('base64')}`;
}
