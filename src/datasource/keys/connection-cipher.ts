/**
 * Seals connections and unseals them. Each connection is sealed with a data key of its own, and a
 * key of the keyring seals that data key. Workspace, slug and revision are part of the sealed text
 * and are compared when it is unsealed, so a record that was moved or replayed is rejected.
 * Plaintext and data keys are wiped after use.
 */

import { randomBytes } from 'node:crypto';
import nacl from 'tweetnacl';
import { invariant } from '#src/base/errors/invariant.ts';
import type { SealedConnection } from '#storage/records/datasources.ts';
import type { ConnectionSettings } from '../connectors/connection-schema.ts';
import type { Keyring } from './keyring.ts';

/** The datasource and the revision that a sealed connection belongs to. */
export interface SealedRef {
  readonly workspaceId: string;
  readonly slug: string;
  readonly revision: number;
}

/** A sealed connection could not be unsealed: its key, its ref or its bytes are wrong. Holds none of its content. */
export class UnsealError extends Error {
  constructor(ref: SealedRef) {
    super(`The sealed connection of ${ref.slug}, revision ${ref.revision}, cannot be unsealed.`);
    this.name = 'UnsealError';
  }
}

/**
 * Returns the connection, sealed with a new data key. The active key of the ring seals the data
 * key.
 */
export function sealConnection(
  ring: Keyring,
  ref: SealedRef,
  connection: ConnectionSettings,
): SealedConnection {
  const dataKey = new Uint8Array(randomBytes(nacl.secretbox.keyLength));
  const plaintext = new Uint8Array(Buffer.from(JSON.stringify({ ...refOf(ref), connection })));
  try {
    const nonce = newNonce();
    return { ...sealDataKey(ring, dataKey), nonce, box: nacl.secretbox(plaintext, nonce, dataKey) };
  } finally {
    wipe(dataKey, plaintext);
  }
}

/** Returns the unsealed connection. Throws `UnsealError`. */
export function openConnection(ring: Keyring, ref: SealedRef, sealed: SealedConnection): ConnectionSettings {
  const dataKey = openDataKey(ring, ref, sealed);
  const plaintext = nacl.secretbox.open(bytes(sealed.box), bytes(sealed.nonce), dataKey);
  wipe(dataKey);
  if (plaintext === null) throw new UnsealError(ref);
  try {
    const { connection, ...found } = JSON.parse(Buffer.from(plaintext).toString('utf8')) as SealedRef & {
      connection: ConnectionSettings;
    };
    const { workspaceId, slug, revision } = found;
    if (workspaceId !== ref.workspaceId || slug !== ref.slug || revision !== ref.revision) {
      throw new UnsealError(ref);
    }
    return connection;
  } finally {
    wipe(plaintext);
  }
}

/** Returns the sealed connection with its data key sealed by the active key. The connection itself stays sealed. */
export function resealConnection(ring: Keyring, ref: SealedRef, sealed: SealedConnection): SealedConnection {
  const dataKey = openDataKey(ring, ref, sealed);
  try {
    return { ...sealDataKey(ring, dataKey), nonce: sealed.nonce, box: sealed.box };
  } finally {
    wipe(dataKey);
  }
}

function sealDataKey(
  ring: Keyring,
  dataKey: Uint8Array,
): Pick<SealedConnection, 'keyId' | 'keyNonce' | 'keyBox'> {
  const keyNonce = newNonce();
  return { keyId: ring.active, keyNonce, keyBox: nacl.secretbox(dataKey, keyNonce, activeKey(ring)) };
}

function openDataKey(ring: Keyring, ref: SealedRef, sealed: SealedConnection): Uint8Array {
  const key = ring.keys.get(sealed.keyId);
  const opened =
    key === undefined ? null : nacl.secretbox.open(bytes(sealed.keyBox), bytes(sealed.keyNonce), key);
  if (opened === null) throw new UnsealError(ref);
  return opened;
}

function activeKey(ring: Keyring): Uint8Array {
  const key = ring.keys.get(ring.active);
  invariant(key !== undefined, 'A keyring has its active key.');
  return key;
}

function refOf({ workspaceId, slug, revision }: SealedRef): SealedRef {
  return { workspaceId, slug, revision };
}

function newNonce(): Uint8Array {
  return new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
}

/** Returns a plain Uint8Array: tweetnacl rejects Buffers, which the store returns. */
function bytes(from: Uint8Array): Uint8Array {
  return new Uint8Array(from);
}

function wipe(...buffers: Uint8Array[]): void {
  for (const buffer of buffers) buffer.fill(0);
}
