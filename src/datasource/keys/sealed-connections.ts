/** Sealed connections in the store, and which key sealed which: the two are only ever written together. */

import { sealedBy, sealedConnections } from '#storage/datasources.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store, Transaction } from '#storage/store.ts';
import type { Connection } from '../connectors/connection-schema.ts';
import { openConnection, resealConnection, type SealedPlace, sealConnection } from './connection-cipher.ts';
import type { Keyring } from './keyring.ts';

export function putSealed(tx: Transaction, ring: Keyring, place: SealedPlace, connection: Connection): void {
  const sealed = sealConnection(ring, place, connection);
  tx.put(sealedConnections, sealed, ...keyOf(place));
  tx.put(sealedBy, null, SYSTEM, sealed.keyId, ...keyOf(place));
}

export function removeSealed(tx: Transaction, place: SealedPlace): void {
  const sealed = tx.get(sealedConnections, ...keyOf(place));
  if (sealed === undefined) return;
  tx.remove(sealedConnections, ...keyOf(place));
  tx.remove(sealedBy, SYSTEM, sealed.keyId, ...keyOf(place));
}

/** Seals it by the active key, unless it is already or is gone. */
export function reseal(tx: Transaction, ring: Keyring, place: SealedPlace): void {
  const sealed = tx.get(sealedConnections, ...keyOf(place));
  if (sealed === undefined || sealed.keyId === ring.active) return;
  tx.put(sealedConnections, resealConnection(ring, place, sealed), ...keyOf(place));
  tx.remove(sealedBy, SYSTEM, sealed.keyId, ...keyOf(place));
  tx.put(sealedBy, null, SYSTEM, ring.active, ...keyOf(place));
}

/** Throws `UnsealError`. */
export function readSealed(store: Store, ring: Keyring, place: SealedPlace): Connection {
  const sealed = store.get(sealedConnections, ...keyOf(place));
  if (sealed === undefined) throw new Error(`The datasource ${place.slug} has no sealed connection.`);
  return openConnection(ring, place, sealed);
}

/** The first `limit` connections whose data key this key seals. */
export function listSealedBy(store: Store, keyId: string, limit: number): SealedPlace[] {
  return [...store.listKeys(sealedBy, SYSTEM, [keyId], limit)].map(
    ([, workspaceId = '', slug = '', revision = '']) => ({ workspaceId, slug, revision: Number(revision) }),
  );
}

function keyOf({ workspaceId, slug, revision }: SealedPlace): [string, string, string] {
  return [workspaceId, slug, String(revision)];
}
