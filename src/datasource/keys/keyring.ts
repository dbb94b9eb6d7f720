/**
 * The keyring: the keys that seal data keys, in a file of its own inside or outside of the data directory. One key is
 * active and seals; the others only open what they sealed before. The file is replaced atomically and only its owner can
 * read it. The caller checks a keyring against the store before it seals or opens anything.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import nacl from 'tweetnacl';
import { writePrivateFile } from '#storage/private-file.ts';

/** Keys by id, and the id of the active one. */
export interface Keyring {
  readonly active: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

/** The keyring cannot be used. The message is one line for the operator and holds no key. */
export class KeyringError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'KeyringError';
  }
}

/** Returns the keyring at `path`. Throws `KeyringError` when the file is missing or damaged. */
export function readKeyring(path: string): Keyring {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'is missing' : 'cannot be read';
    throw new KeyringError(`The keyring ${path} ${why}. Restore it from its backup.`);
  }
  const { active, keys } = { active: undefined, keys: undefined, ...Object(content) };
  const entries = Object.entries(Object(keys)).map(([id, text]) => {
    const key = typeof text === 'string' ? new Uint8Array(Buffer.from(text, 'base64')) : new Uint8Array();
    return [id, key] as const;
  });
  const ring = new Map(entries);
  const isSound = [...ring].every(([id, key]) => id !== '' && key.length === nacl.secretbox.keyLength);
  if (typeof active !== 'string' || !ring.has(active) || !isSound) {
    throw new KeyringError(`The keyring ${path} is damaged. Restore it from its backup.`);
  }
  chmodSync(path, 0o600);
  return { active, keys: ring };
}

/** Returns whether there is a file at `path`. */
export function hasKeyring(path: string): boolean {
  return existsSync(path);
}

/** Returns a keyring with one more key, which is the active one. */
export function withNewKey(ring: Keyring | undefined): Keyring {
  const id = `key_${randomBytes(6).toString('hex')}`;
  const key = new Uint8Array(randomBytes(nacl.secretbox.keyLength));
  return { active: id, keys: new Map([...(ring?.keys ?? []), [id, key]]) };
}

/** Returns a keyring of the active key and those with the given ids. */
export function keepingKeys(ring: Keyring, ids: ReadonlySet<string>): Keyring {
  return { ...ring, keys: new Map([...ring.keys].filter(([id]) => id === ring.active || ids.has(id))) };
}

/** Replaces the file atomically. It is on disk when this returns. */
export function writeKeyring(path: string, { active, keys }: Keyring): void {
  const encoded = [...keys].map(([id, key]) => [id, Buffer.from(key).toString('base64')]);
  const content = { version: 1, active, keys: Object.fromEntries(encoded) };
  writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`);
}
