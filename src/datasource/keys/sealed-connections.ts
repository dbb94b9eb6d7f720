/**
 * Sealed connections in the store, and an index that lists them by the key that sealed them. Both
 * are always written together.
 */

import { invariant } from '#src/base/errors/invariant.ts';
import { DAMAGED, readOrDamaged, unlessDamaged } from '#storage/damaged.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import { type SealedConnection, sealedBy, sealedConnections } from '#storage/records/datasources.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { notebookOfSealed } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { ConnectionSettings } from '../connectors/connection-schema.ts';
import {
  openConnection,
  resealConnection,
  type SealedRef,
  sealConnection,
  UnsealError,
} from './connection-cipher.ts';
import type { Keyring, KeyringSource } from './keyring.ts';

/** Seals the connection with the active key and stores it. */
export function putSealed(
  tx: Transaction,
  ring: Keyring,
  ref: SealedRef,
  connection: ConnectionSettings,
): void {
  const sealed = sealConnection(ring, ref, connection);
  tx.put(sealedConnections, sealed, ...keyOf(ref));
  tx.mark(sealedBy, SYSTEM, sealed.keyId, ...keyOf(ref));
}

/**
 * Removes a sealed connection, if it exists. A damaged one does not say which key sealed it, so `reseal` removes its index entry
 * later.
 */
export function removeSealed(tx: Transaction, ref: SealedRef): void {
  const sealed = readOrDamaged(() => tx.get(sealedConnections, ...keyOf(ref)));
  if (sealed === undefined) return;
  tx.remove(sealedConnections, ...keyOf(ref));
  if (sealed === DAMAGED) return;
  tx.remove(sealedBy, SYSTEM, sealed.keyId, ...keyOf(ref));
}

/**
 * Removes the index entries of the record with this key, if it is a sealed connection. The record
 * is about to be removed.
 */
export function unlinkSealed(tx: Transaction, [workspaceId, name, slug = '', revision = '']: StoreKey): void {
  if (name === sealedConnections.name) removeSealed(tx, { workspaceId, slug, revision: Number(revision) });
}

/**
 * Seals a connection with the active key, unless that key already seals it. `keyId` is the key
 * under which the index lists the connection. If the connection no longer exists, this removes its
 * index entry. A damaged connection is not changed, because a restore from a backup needs its key.
 */
export function reseal(tx: Transaction, ring: Keyring, keyId: string, ref: SealedRef): void {
  const sealed = readOrDamaged(() => tx.get(sealedConnections, ...keyOf(ref)));
  if (sealed === undefined) tx.remove(sealedBy, SYSTEM, keyId, ...keyOf(ref));
  if (sealed === undefined || sealed === DAMAGED || sealed.keyId === ring.active) return;
  tx.put(sealedConnections, resealConnection(ring, ref, sealed), ...keyOf(ref));
  tx.remove(sealedBy, SYSTEM, sealed.keyId, ...keyOf(ref));
  tx.mark(sealedBy, SYSTEM, ring.active, ...keyOf(ref));
}

/** Returns the unsealed connection. Throws `UnsealError`. */
export function readSealed(store: Store, keys: KeyringSource, ref: SealedRef): ConnectionSettings {
  const sealed = store.get(sealedConnections, ...keyOf(ref));
  invariant(sealed !== undefined, 'A datasource has a sealed connection.', ref.slug);
  return openConnection(keys.ringWith(sealed.keyId), ref, sealed);
}

/** Returns whether the key opens the first undamaged connection that it seals. Returns true for a key that seals none. */
export function opensSealedBy(store: Pick<Store, 'get' | 'listKeys'>, ring: Keyring, keyId: string): boolean {
  for (const ref of listSealedBy(store, keyId, Number.MAX_SAFE_INTEGER)) {
    const sealed = unlessDamaged(() => store.get(sealedConnections, ...keyOf(ref)));
    if (sealed?.keyId === keyId) return opens(ring, ref, sealed);
  }
  return true;
}

function opens(ring: Keyring, ref: SealedRef, sealed: SealedConnection): boolean {
  try {
    openConnection(ring, ref, sealed);
    return true;
  } catch (error) {
    if (error instanceof UnsealError) return false;
    throw error;
  }
}

/** Returns the first `limit` connections that this key seals, in total or after a given one. */
export function listSealedBy(
  store: Pick<Store, 'listKeys'>,
  keyId: string,
  limit: number,
  after?: SealedRef,
): readonly SealedRef[] {
  const beyond = after === undefined ? undefined : [keyId, ...keyOf(after)];
  return [...store.listKeys(sealedBy, SYSTEM, [keyId], limit, beyond)].map(refOf);
}

/** Returns whether the connection exists and can be sealed again. A damaged one cannot. */
export function canReseal(store: Pick<Store, 'get'>, ref: SealedRef): boolean {
  return unlessDamaged(() => store.get(sealedConnections, ...keyOf(ref))) !== undefined;
}

/**
 * Returns the notebook whose owner writes the connection, if it is the secret of a notebook in an
 * existing workspace. Otherwise returns undefined: the owner of the workspace writes the
 * connection, and removes the remains of a deleted workspace.
 */
export function homeOfSealed(store: Pick<Store, 'get'>, ref: SealedRef): string | undefined {
  const isDeleted = store.get(workspaceRecords, ref.workspaceId) === undefined;
  return isDeleted ? undefined : notebookOfSealed(ref.slug);
}

function refOf([, workspaceId = '', slug = '', revision = '']: readonly string[]): SealedRef {
  return { workspaceId, slug, revision: Number(revision) };
}

function keyOf({ workspaceId, slug, revision }: SealedRef): [string, string, string] {
  return [workspaceId, slug, String(revision)];
}
