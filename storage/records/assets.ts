/** The assets of runs: outputs that are too large for the run record, and images of conversations. */

import { DamagedRecord, defineRecord } from '../codec.ts';
import { unlessDamaged } from '../damaged.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';
import { type Blob, blobRecords, releaseBlob, useBlob } from './blobs.ts';

export interface Asset extends Blob {
  readonly mimetype: string;
}

/** An asset without its bytes, which are a blob. */
interface AssetRecord extends Omit<Asset, 'bytes'> {
  /**
   * The notebook or conversation of the run. It owns the blob; an asset outlives the record of its
   * run.
   */
  readonly sessionId: string;
}

/** Key: workspace id, run id, asset id. */
export const assetRecords = defineRecord<AssetRecord>('asset', 1);

type AssetKey = readonly [workspaceId: string, runId: string, assetId: string];

/** Stores an asset of a run of this notebook or conversation. */
export function putAsset(
  tx: Transaction,
  { mimetype, ...blob }: Asset,
  sessionId: string,
  ...key: AssetKey
): void {
  tx.put(assetRecords, { mimetype, sha256: blob.sha256, sessionId }, ...key);
  useBlob(tx, blob, key[0], sessionId);
}

/** Returns an asset, or undefined when there is none. Throws `DamagedRecord` when its bytes are lost. */
export function readAsset(store: Pick<Store, 'get'>, ...key: AssetKey): Asset | undefined {
  const asset = store.get(assetRecords, ...key);
  if (asset === undefined) return undefined;
  const { mimetype, sha256, sessionId } = asset;
  const bytes = store.get(blobRecords, key[0], sessionId, sha256);
  if (bytes === undefined) throw new DamagedRecord(assetRecords.name, 'its bytes are missing');
  return { mimetype, sha256, bytes };
}

/** Removes an asset. A damaged record does not name its blob, so that blob stays. */
export function removeAsset(tx: Transaction, ...key: AssetKey): void {
  const asset = unlessDamaged(() => tx.get(assetRecords, ...key));
  tx.remove(assetRecords, ...key);
  if (asset !== undefined) releaseBlob(tx, asset.sha256, key[0], asset.sessionId);
}
