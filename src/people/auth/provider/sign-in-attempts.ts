import { hkdfSync, randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { invariant } from '#src/base/errors/invariant.ts';
import type { PageKeys } from '../page-tokens.ts';
import type { SignInAttempt } from './identity-provider.ts';

/** An attempt to sign in, as the browser keeps it. */
export interface KeptAttempt extends SignInAttempt {
  /** The page to open afterwards. */
  readonly to: string;
}

/** How long an attempt to sign in with the identity provider may take, in seconds. */
export const ATTEMPT_S = 600;
/**
 * The most characters of a sealed attempt. It contains the address of the page to open, which has at most
 * some thousand characters.
 */
const MAX_SEALED_CHARS = 16_384;

/**
 * Seals the attempts that browsers keep in a cookie while people are at the identity provider. Only this server can make one, so a
 * stranger cannot make it ask the provider about invented attempts. Attempts are not stored: each worker opens those of the others.
 */
export class SignInAttempts {
  readonly #keys: (keyId?: string) => PageKeys;

  /** `keys` returns the present keys; with `id`, keys that include that one, which another process may have just added. */
  constructor(keys: (keyId?: string) => PageKeys) {
    this.#keys = keys;
  }

  seal(attempt: KeptAttempt, nowMs = Date.now()): string {
    const { active, keys } = this.#keys();
    const key = keys.get(active);
    invariant(key !== undefined, 'A keyring has its active key.', active);
    const text = JSON.stringify({ ...attempt, expiresAtMs: nowMs + ATTEMPT_S * 1000 });
    const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
    const box = nacl.secretbox(new Uint8Array(Buffer.from(text)), nonce, sealingKey(key));
    return `${active}.${Buffer.concat([nonce, box]).toString('base64url')}`;
  }

  /** Returns the attempt; undefined when this server has not made it, or its time is over. */
  open(sealed: string, nowMs = Date.now()): KeptAttempt | undefined {
    const at = sealed.length > MAX_SEALED_CHARS ? -1 : sealed.lastIndexOf('.');
    if (at < 1) return undefined;
    const keyId = sealed.slice(0, at);
    const key = this.#keys(keyId).keys.get(keyId);
    const bytes = new Uint8Array(Buffer.from(sealed.slice(at + 1), 'base64url'));
    if (key === undefined || bytes.byteLength < nacl.secretbox.nonceLength) return undefined;
    const [nonce, box] = [
      bytes.slice(0, nacl.secretbox.nonceLength),
      bytes.slice(nacl.secretbox.nonceLength),
    ];
    const text = nacl.secretbox.open(box, nonce, sealingKey(key));
    if (text === null) return undefined;
    // Sealed, so this server has made the attempt.
    const { expiresAtMs, ...attempt } = JSON.parse(Buffer.from(text).toString()) as KeptAttempt & {
      readonly expiresAtMs: number;
    };
    return nowMs < expiresAtMs ? attempt : undefined;
  }
}

function sealingKey(key: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', key, '', 'troupe sign-in attempts', nacl.secretbox.keyLength));
}
