/** Texts that only the keyring opens, as JSON: for secrets that leave the data directory in a file, such as those in a backup. */

import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { invariant } from '#src/base/errors/invariant.ts';
import { type Keyring, KeyringError } from './keyring.ts';

/** Returns the text, sealed with the active key, together with `purpose`, without which it does not open. */
export function sealText({ active, keys }: Keyring, purpose: string, text: string): string {
  const key = keys.get(active);
  invariant(key !== undefined, 'A keyring has its active key.');
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  const box = nacl.secretbox(new Uint8Array(Buffer.from(JSON.stringify({ purpose, text }))), nonce, key);
  const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
  return `${JSON.stringify({ version: 1, keyId: active, nonce: encode(nonce), box: encode(box) })}\n`;
}

/** Returns the text that was sealed for `purpose` in the file `path`. Throws `KeyringError` when this keyring does not open it. */
export function openText({ keys }: Keyring, purpose: string, sealed: string, path: string): string {
  const { keyId, nonce, box } = parsed(sealed);
  const key = keys.get(String(keyId));
  const opened = key && nacl.secretbox.open(decode(box), decode(nonce), key);
  const { purpose: found, text } = opened ? parsed(Buffer.from(opened).toString('utf8')) : {};
  if (found === purpose && typeof text === 'string') return text;
  throw new KeyringError(
    `${path} cannot be opened with this keyring${key === undefined ? `, which lacks the key ${String(keyId)}` : ''}.`,
    'Restore the keyring that belongs to the backup, or delete the file: then every node needs a new invitation.',
  );
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    return { ...Object(JSON.parse(text)) };
  } catch {
    return {};
  }
}

/** Returns the bytes; none when they cannot be a nonce or a box, which then opens nothing. */
function decode(text: unknown): Uint8Array {
  const bytes = new Uint8Array(typeof text === 'string' ? Buffer.from(text, 'base64') : []);
  return bytes.length === 0 ? new Uint8Array(nacl.secretbox.nonceLength) : bytes;
}
