/**
 * The keyring: the keys that seal data keys, in a separate file, inside or outside of the data directory. One key is active and
 * seals; the others only open earlier records. The file is replaced atomically and only its owner can read it. The caller checks a
 * keyring against the store before it seals or opens anything.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import nacl from 'tweetnacl';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { adviceFor, errorNameOf, meaningOf } from '#src/base/errors/system-error.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';

/** Keys by id, and the id of the active one. */
export interface Keyring {
  readonly active: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
}

/** The source of the running server's keyring. */
export interface KeyringSource {
  readonly ring: Keyring;
  /**
   * Returns the keyring. Reads it again when it lacks this key, because another worker may have
   * added the key.
   */
  ringWith(keyId: string): Keyring;
}

/** The keyring cannot be used. The message is one line for the operator and contains no key. */
export class KeyringError extends OperatorError {}

/**
 * Returns the keyring at `path`. Throws `KeyringError`, which names the fault of the file: it is missing, cannot be
 * read, is empty, is not JSON, or lacks sound keys. Changes nothing.
 */
export function readKeyring(path: string): Keyring {
  const { active, keys } = { active: undefined, keys: undefined, ...Object(parsed(path, textOf(path))) };
  const entries = Object.entries(Object(keys)).map(([id, text]) => {
    const key = typeof text === 'string' ? new Uint8Array(Buffer.from(text, 'base64')) : new Uint8Array();
    return [id, key] as const;
  });
  const broken = entries.find(([id, key]) => id === '' || key.length !== nacl.secretbox.keyLength);
  if (broken !== undefined) throw damaged(path, `its key ${JSON.stringify(broken[0])} is not a sound key`);
  const ring = new Map(entries);
  if (typeof active !== 'string') throw damaged(path, 'it does not name an active key');
  if (!ring.has(active)) throw damaged(path, 'its active key is missing in it');
  return { active, keys: ring };
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (errorNameOf(error) === 'ENOENT')
      throw new KeyringError(
        `The keyring ${path} is missing, but this store has data that it seals.`,
        'Restore it from its backup, or set TROUPE_KEYRING_FILE to the place where it is.',
      );
    if (errorNameOf(error) === 'EISDIR')
      throw new KeyringError(
        `The keyring ${path} is a directory.`,
        'Set TROUPE_KEYRING_FILE to the file. Container engines make a directory where the file that is to be mounted is missing.',
      );
    throw refused(`The keyring ${path} cannot be read`, error);
  }
}

function parsed(path: string, text: string): unknown {
  if (text.trim() === '') throw damaged(path, 'the file is empty');
  try {
    return JSON.parse(text);
  } catch {
    throw damaged(path, 'it is not valid JSON'); // the contents of the file must not be in the message
  }
}

function damaged(path: string, why: string): KeyringError {
  return new KeyringError(`The keyring ${path} is damaged: ${why}.`, 'Restore it from its backup.');
}

function refused(attempt: string, error: unknown): KeyringError {
  return new KeyringError(`${attempt}: ${meaningOf(error)}.`, adviceFor(error));
}

/** Closes the file to other users. */
export function protectKeyring(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    // A mounted secret can be read-only. The mount then decides which users may read it.
    if (errorNameOf(error) !== 'EROFS' && errorNameOf(error) !== 'EPERM') throw error;
  }
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

/** Returns a keyring without the key, which is not the active one. */
export function withoutKey(ring: Keyring, keyId: string): Keyring {
  return { ...ring, keys: new Map([...ring.keys].filter(([id]) => id !== keyId)) };
}

/** Replaces the file atomically. It is on disk when this returns. Throws `KeyringError` when it cannot be written. */
export function writeKeyring(path: string, { active, keys }: Keyring): void {
  const encoded = [...keys].map(([id, key]) => [id, Buffer.from(key).toString('base64')]);
  const content = { version: 1, active, keys: Object.fromEntries(encoded) };
  try {
    writePrivateFile(path, `${JSON.stringify(content, null, 2)}\n`);
  } catch (error) {
    throw refused(`The keyring ${path} cannot be written`, error);
  }
}
