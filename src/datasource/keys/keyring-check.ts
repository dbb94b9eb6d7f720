import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import type { KeyCheck } from '#storage/datasources.ts';

const PHRASE = new Uint8Array(Buffer.from('troupe key check 1'));

/** Something that only this key opens. */
export function checkFor(key: Uint8Array): KeyCheck {
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  return { nonce, box: nacl.secretbox(PHRASE, nonce, key) };
}

export function opensCheck(key: Uint8Array, { nonce, box }: KeyCheck): boolean {
  const opened = nacl.secretbox.open(new Uint8Array(box), new Uint8Array(nonce), key);
  return opened !== null && nacl.verify(opened, PHRASE);
}
