/**
 * Bytes that several records of a notebook or conversation may share: stored once, under their hash, as long as a
 * record uses them. A large output is an asset of its run and also an output of its cell, and the previous run often
 * had the same output. Each notebook and conversation has blobs of its own, because the counts of uses are written by
 * its home alone.
 */
import { defineRecord, encodeBytesRecord } from '../codec.ts';
import { DAMAGED, readOrDamaged } from '../damaged.ts';
import type { Transaction } from '../transaction.ts';

export interface Blob {
  /** The SHA-256 of the bytes, in hexadecimal. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
  /** The record of the bytes, if it was encoded before (`encodeBlob`). */
  readonly record?: Uint8Array;
}

/** Key: workspace id, notebook or conversation id, SHA-256. */
export const blobRecords = defineRecord<Uint8Array>('session-blob', 1);

/** How often records use a blob. Key: workspace id, notebook or conversation id, SHA-256. */
export const blobUses = defineRecord<number>('session-blob-uses', 1);

/** The owner of blobs: a workspace and a notebook or conversation in it. */
export type BlobScope = readonly [workspaceId: string, sessionId: string];

/**
 * Returns the record of these bytes, in steps of up to a millisecond. The record ends with the
 * bytes.
 */
export function encodeBlob(parts: readonly Uint8Array[]): Generator<undefined, Uint8Array> {
  return encodeBytesRecord(blobRecords, parts);
}

/** Stores the bytes unless they are stored already, for one more use. */
export function useBlob(tx: Transaction, { sha256, bytes, record }: Blob, ...scope: BlobScope): void {
  const uses = usesOf(tx, sha256, scope);
  if (uses === 0 && record === undefined) tx.put(blobRecords, bytes, ...scope, sha256);
  else if (uses === 0 && record !== undefined)
    tx.putEncoded({ kind: blobRecords, bytes: record }, ...scope, sha256);
  tx.put(blobUses, uses + 1, ...scope, sha256);
}

/** Ends one use of a blob. The bytes are removed with the last use. */
export function releaseBlob(tx: Transaction, sha256: string, ...scope: BlobScope): void {
  const uses = usesOf(tx, sha256, scope);
  if (uses > 1) {
    tx.put(blobUses, uses - 1, ...scope, sha256);
    return;
  }
  tx.remove(blobUses, ...scope, sha256);
  tx.remove(blobRecords, ...scope, sha256);
}

/**
 * Returns how many records use a blob. A damaged count counts as infinite from then on: other records may still use
 * the bytes, so they stay as long as their notebook or conversation.
 */
function usesOf(tx: Transaction, sha256: string, scope: BlobScope): number {
  const uses = readOrDamaged(() => tx.get(blobUses, ...scope, sha256));
  return uses === DAMAGED ? Number.POSITIVE_INFINITY : (uses ?? 0);
}
