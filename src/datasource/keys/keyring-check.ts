import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import type { KeyCheck } from '#storage/records/datasources.ts';

const PHRASE = new Uint8Array(Buffer.from('troupe key check 1'));

/** Returns a sealed phrase that only this key opens: the store recognises a wrong keyring by it. */
export function createKeyCheck(key: Uint8Array): KeyCheck {
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  return { nonce, box: nacl.secretbox(PHRASE, nonce, key) };
}

/** Returns whether this is the key that the check was made with. */
export function matchesKeyCheck(key: Uint8Array, { nonce, box }: KeyCheck): boolean {
  const opened = nacl.secretbox.open(new Uint8Array(box), new Uint8Array(nonce), key);
  return opened !== null && nacl.verify(opened, PHRASE);
}
