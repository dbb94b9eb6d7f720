/**
 * Format 4 → 5: blobs with the counts of their uses, marks of trimmed runs, and noted removals were records of a whole
 * workspace. Now each notebook and each conversation has its own, because they may be at home in different workers.
 */

import { defineRecord } from '../codec.ts';
import { unlessDamaged } from '../damaged.ts';
import { SYSTEM } from '../keys.ts';
import { type AssetRecord, assetRecords } from '../records/assets.ts';
import { blobRecords, blobUses } from '../records/blobs.ts';
import { cellOutputRecords } from '../records/notebooks.ts';
import { runIndex, runRecords, trimmedRuns } from '../records/runs.ts';
import { removalRecords, WORKSPACE_ITSELF } from '../removals.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';
import { type Pass, passOver, workspacesOf } from './conversion.ts';

/** Key: workspace id, SHA-256. */
const oldBlobs = defineRecord<Uint8Array>('blob', 1);
const oldUses = defineRecord<number>('blob-uses', 1);
/** Key: workspace id. */
const oldTrimmedRuns = defineRecord<string>('trimmed-run', 1);
/**
 * How many uses of a blob by a notebook or conversation are counted so far. It exists only during the conversion.
 * Key: workspace id, SHA-256, notebook or conversation id.
 */
const countedUses = defineRecord<number>('counted-use', 1);

export function* partBySession(store: Store): Generator<Pass<unknown>> {
  for (const workspaceId of workspacesOf(store)) {
    yield* partBlobs(workspaceId);
    yield partTrimmedRuns(store, workspaceId);
  }
  yield convertRemovals;
}

/**
 * Counts the uses of each blob, gives each notebook and conversation that uses a blob its own copy,
 * and removes the old blobs.
 */
function* partBlobs(workspaceId: string): Generator<Pass<unknown>> {
  // Removes counts of an earlier attempt of the conversion.
  yield {
    kind: countedUses,
    partition: workspaceId,
    keysOnly: true,
    convert: (tx, { ids }) => tx.remove(countedUses, workspaceId, ...ids),
  };
  yield convertAssets(workspaceId);
  yield passOver(cellOutputRecords, workspaceId, [], (tx, { held }, [sessionId = '']) => {
    for (const { sha256 } of held ?? []) countUse(tx, workspaceId, sha256, sessionId);
  });
  yield passOver(countedUses, workspaceId, [], (tx, count, [sha256 = '', sessionId = '']) => {
    // A missing blob was moved by an earlier attempt of the conversion, or is damaged.
    const bytes = unlessDamaged(() => tx.get(oldBlobs, workspaceId, sha256));
    if (bytes !== undefined) {
      tx.put(blobRecords, bytes, workspaceId, sessionId, sha256);
      tx.put(blobUses, count, workspaceId, sessionId, sha256);
    }
    tx.remove(countedUses, workspaceId, sha256, sessionId);
  });
  for (const kind of [oldBlobs, oldUses])
    yield {
      kind,
      partition: workspaceId,
      keysOnly: true,
      convert: (tx, { ids }) => tx.remove(kind, workspaceId, ...ids),
    };
}

/** Adds to each asset the notebook or conversation of its run. Assets of deleted runs are removed. */
function convertAssets(workspaceId: string): Pass<Partial<AssetRecord>> {
  return {
    kind: assetRecords,
    partition: workspaceId,
    convert(tx, { ids, value: asset }) {
      const sessionId = sessionOf(tx, workspaceId, ids[0] ?? '');
      if (sessionId === undefined) tx.remove(assetRecords, workspaceId, ...ids);
      else if (asset !== undefined) {
        tx.put(assetRecords, { ...(asset as AssetRecord), sessionId }, workspaceId, ...ids);
        if (asset.bytes === undefined) countUse(tx, workspaceId, asset.sha256 ?? '', sessionId);
      }
    },
  };
}

/** Returns the notebook or conversation of a run; undefined when it is deleted. */
function sessionOf(tx: Transaction, workspaceId: string, runId: string): string | undefined {
  for (const kind of [runIndex, runRecords]) {
    const record = unlessDamaged(() => tx.get<{ readonly sessionId: string }>(kind, workspaceId, runId));
    if (record !== undefined) return record.sessionId;
  }
  return undefined;
}

function countUse(tx: Transaction, workspaceId: string, sha256: string, sessionId: string): void {
  const count = unlessDamaged(() => tx.get(countedUses, workspaceId, sha256, sessionId)) ?? 0;
  tx.put(countedUses, count + 1, workspaceId, sha256, sessionId);
}

/** Notes for each notebook and conversation its newest run up to the mark of the workspace. */
function partTrimmedRuns(store: Store, workspaceId: string): Pass<unknown> {
  const mark = unlessDamaged(() => store.get(oldTrimmedRuns, workspaceId)) ?? '';
  return {
    ...passOver(runIndex, workspaceId, [], (tx, { kind, sessionId }, [id = '']) => {
      if (id <= mark) tx.put(trimmedRuns, id, workspaceId, kind, sessionId);
    }),
    ...(mark !== '' && { end: (tx: Transaction) => tx.remove(oldTrimmedRuns, workspaceId) }),
  };
}

/** Adds its owner to each removal: the notebook or conversation itself, that of the run's session, or the workspace. */
const convertRemovals: Pass<unknown> = {
  kind: removalRecords,
  partition: SYSTEM,
  keysOnly: true,
  convert(tx, { ids }) {
    const [workspaceId = '', kind = '', id = '', isConverted] = ids;
    if (isConverted !== undefined) return;
    tx.remove(removalRecords, SYSTEM, ...ids);
    const home = kind === 'run' ? sessionOf(tx, workspaceId, id) : id;
    // The assets of a run that is deleted are removed already.
    if (home === undefined) return;
    const owner = kind === 'workspace' ? WORKSPACE_ITSELF : home;
    tx.mark(removalRecords, SYSTEM, workspaceId, owner, kind, id);
  },
};
