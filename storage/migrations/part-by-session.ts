/**
 * Format 4 → 5: what several notebooks and conversations of a workspace had together gets parted, because each of them may be at
 * home in another worker: blobs with the counts of their uses, marks of trimmed runs, and noted removals.
 */
import { type AssetRecord, assetRecords } from '../assets.ts';
import { blobRecords, blobUses } from '../blobs.ts';
import { defineRecord, type RecordKind } from '../codec.ts';
import { unlessDamaged } from '../damaged.ts';
import { SYSTEM } from '../keys.ts';
import { cellOutputRecords } from '../notebooks.ts';
import { removalRecords, WORKSPACE_ITSELF } from '../removals.ts';
import { runIndex, runRecords, trimmedRuns } from '../runs.ts';
import type { Store } from '../store.ts';
import type { Transaction } from '../transaction.ts';
import { convertAll, workspacesOf } from './convert.ts';

/** Key: workspace id, SHA-256. */
const oldBlobs = defineRecord<Uint8Array>('blob', 1);
const oldUses = defineRecord<number>('blob-uses', 1);
/** Key: workspace id. */
const oldTrimmedRuns = defineRecord<string>('trimmed-run', 1);
/** Records that are converted in one commit. */
const BATCH = 500;
const MAX_BYTES = 8 * 1024 * 1024;

/** How often each notebook and conversation uses a blob, by the blob's hash. */
type Uses = Map<string, Map<string, number>>;

export async function partBySession(store: Store): Promise<void> {
  for (const workspaceId of workspacesOf(store)) {
    await partBlobs(store, workspaceId);
    await partTrimmedRuns(store, workspaceId);
  }
  await convertRemovals(store);
}

/** Writes what is large in commits of a bounded size. */
class BoundedCommits {
  readonly store: Store;
  #bytes = 0;

  constructor(store: Store) {
    this.store = store;
  }

  /** Notes what the present commit has got. Resolves once there is room for more. */
  async note(bytes: number): Promise<void> {
    this.#bytes += bytes;
    if (this.#bytes <= MAX_BYTES) return;
    this.#bytes = 0;
    await this.store.durable();
  }
}

/** After a crash the uses are counted again. A blob is removed last, so one that is not found any more has moved. */
async function partBlobs(store: Store, workspaceId: string): Promise<void> {
  const uses: Uses = new Map();
  const commits = new BoundedCommits(store);
  await convertAssets(commits, workspaceId, uses);
  for await (const keys of batchesOf(store, cellOutputRecords, workspaceId))
    for (const key of keys) {
      const record = unlessDamaged(() => store.get(cellOutputRecords, workspaceId, ...key));
      for (const { sha256 } of record?.held ?? []) countUse(uses, sha256, key[0] ?? '');
    }
  for await (const keys of batchesOf(store, oldBlobs, workspaceId))
    for (const [sha256 = ''] of keys)
      await moveBlob(commits, workspaceId, sha256, uses.get(sha256) ?? new Map());
}

/** Notes with each asset the notebook or conversation of its run. Those of runs that were deleted go. */
async function convertAssets(commits: BoundedCommits, workspaceId: string, uses: Uses): Promise<void> {
  const { store } = commits;
  for await (const keys of batchesOf(store, assetRecords, workspaceId))
    for (const key of keys) {
      const asset = unlessDamaged((): Partial<AssetRecord> | undefined =>
        store.get(assetRecords, workspaceId, ...key),
      );
      store.write((tx) => {
        const sessionId = sessionOf(tx, workspaceId, key[0] ?? '');
        if (sessionId === undefined) tx.remove(assetRecords, workspaceId, ...key);
        else if (asset !== undefined) {
          tx.put(assetRecords, { ...(asset as AssetRecord), sessionId }, workspaceId, ...key);
          if (asset.bytes === undefined) countUse(uses, asset.sha256 ?? '', sessionId);
        }
      });
      await commits.note(asset?.bytes?.byteLength ?? 0);
    }
}

/** Returns the notebook or conversation of a run; undefined when it is deleted. */
function sessionOf(tx: Transaction, workspaceId: string, runId: string): string | undefined {
  for (const kind of [runIndex, runRecords]) {
    const record = unlessDamaged(() => tx.get<{ readonly sessionId: string }>(kind, workspaceId, runId));
    if (record !== undefined) return record.sessionId;
  }
  return undefined;
}

function countUse(uses: Uses, sha256: string, sessionId: string): void {
  const bySession = uses.get(sha256) ?? new Map<string, number>();
  uses.set(sha256, bySession.set(sessionId, (bySession.get(sessionId) ?? 0) + 1));
}

/** Gives each notebook and conversation that uses a blob its own. */
async function moveBlob(
  commits: BoundedCommits,
  workspaceId: string,
  sha256: string,
  users: ReadonlyMap<string, number>,
): Promise<void> {
  const { store } = commits;
  const bytes = unlessDamaged(() => store.get(oldBlobs, workspaceId, sha256));
  if (bytes !== undefined)
    for (const [sessionId, count] of users) {
      store.write((tx) => {
        tx.put(blobRecords, bytes, workspaceId, sessionId, sha256);
        tx.put(blobUses, count, workspaceId, sessionId, sha256);
      });
      await commits.note(bytes.byteLength);
    }
  store.write((tx) => {
    tx.remove(oldBlobs, workspaceId, sha256);
    tx.remove(oldUses, workspaceId, sha256);
  });
}

/** Notes of each notebook and conversation its newest run up to the mark that the workspace had. */
async function partTrimmedRuns(store: Store, workspaceId: string): Promise<void> {
  const mark = unlessDamaged(() => store.get(oldTrimmedRuns, workspaceId));
  if (mark === undefined) return;
  await convertAll(store, runIndex, workspaceId, [], (tx, { id, value: { kind, sessionId } }) => {
    if (id <= mark) tx.put(trimmedRuns, id, workspaceId, kind, sessionId);
  });
  store.write((tx) => tx.remove(oldTrimmedRuns, workspaceId));
}

/** Notes with each removal whose it is: a notebook's or conversation's own, that of the run's session, or the workspace's. */
async function convertRemovals(store: Store): Promise<void> {
  for await (const keys of batchesOf(store, removalRecords, SYSTEM))
    store.write((tx) => {
      for (const key of keys) {
        const [workspaceId = '', kind = '', id = '', isConverted] = key;
        if (isConverted !== undefined) continue;
        tx.remove(removalRecords, SYSTEM, ...key);
        const home = kind === 'run' ? sessionOf(tx, workspaceId, id) : id;
        // The assets of a run that is deleted are removed already.
        if (home !== undefined)
          tx.put(
            removalRecords,
            null,
            SYSTEM,
            workspaceId,
            kind === 'workspace' ? WORKSPACE_ITSELF : home,
            kind,
            id,
          );
      }
    });
}

/** Yields the keys of a kind without their first two parts. What is written for a batch is on disk before the next one. */
async function* batchesOf(
  store: Store,
  kind: RecordKind<unknown>,
  partition: string,
): AsyncGenerator<string[][]> {
  for (let beyond: string[] | undefined; ; ) {
    const keys = [...store.listKeys(kind, partition, [], BATCH, beyond)];
    yield keys;
    await store.durable();
    beyond = keys.at(-1);
    if (keys.length < BATCH) return;
  }
}
