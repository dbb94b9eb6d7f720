/**
 * Deletes runs and their assets. The commit of a deletion removes the record, its places in lists and its actor, so
 * that the run cannot be found any more; assets follow in bounded steps.
 */
import { notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { RunKind } from '#src/contract/wire/run.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { assetRecords, removeAsset } from '#storage/records/assets.ts';
import { runIndex, runRecords, runSummaries, trimmedRuns } from '#storage/records/runs.ts';
import type { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { trimmed } from './run-document.ts';
import { listOf, removeFromIndex, type SessionOfRun } from './run-lists.ts';
import type { RunRepository } from './run-repository.ts';

/** The most records that one commit removes. */
const MAX_ASSETS = 100;
const MAX_RUNS = 20;

const RUN = 'run';

export class RunDeletion {
  readonly #store: Store;
  readonly #runs: RunRepository;
  readonly #removals: Removals;

  constructor(store: Store, runs: RunRepository, removals: Removals) {
    this.#store = store;
    this.#runs = runs;
    this.#removals = removals;
    removals.define(RUN, (workspaceId, runId) => this.#removeAssets(workspaceId, runId));
  }

  /** Deletes a run that has ended. Throws `not_found` and `run_in_progress`. */
  delete(workspaceId: WorkspaceId, runId: string): void {
    this.#check(workspaceId, runId);
    this.#store.write((tx) => this.#erase(tx, workspaceId, runId));
  }

  /** Deletes an asset of a run that has ended; the run still names it. Throws `not_found` and `run_in_progress`. */
  deleteAsset(workspaceId: WorkspaceId, runId: string, assetId: string): void {
    this.#check(workspaceId, runId);
    this.#store.write((tx) => {
      if (tx.get(assetRecords, workspaceId, runId, assetId) === undefined) throw notFound();
      removeAsset(tx, workspaceId, runId, assetId);
    });
  }

  /** Removes some runs of a deleted session, with their assets, in one commit. Returns whether no runs were left. */
  removeRuns(kind: RunKind, workspaceId: WorkspaceId, sessionId: string): boolean {
    const keys = [...this.#store.listKeys(listOf(kind), workspaceId, [sessionId], MAX_RUNS)];
    if (keys.length === 0) {
      this.#store.write((tx) => tx.remove(trimmedRuns, workspaceId, kind, sessionId));
      return true;
    }
    this.#removeWhole(
      workspaceId,
      keys.map((key) => key.at(-1) ?? ''),
      { kind, sessionId },
    );
    return false;
  }

  /**
   * Removes whole runs, in their order, until the commit is large enough. The assets of these runs must be committed.
   */
  #removeWhole(workspaceId: WorkspaceId, runIds: readonly string[], session: SessionOfRun): void {
    let room = MAX_ASSETS;
    this.#store.write((tx) => {
      for (const runId of runIds) {
        const assets = [...this.#store.listKeys(assetRecords, workspaceId, [runId], room)];
        for (const [, assetId = ''] of assets) removeAsset(tx, workspaceId, runId, assetId);
        room -= assets.length;
        if (room === 0) return;
        this.#forget(tx, workspaceId, runId, () => session);
      }
    });
  }

  /** Deletes the given runs that have ended, in one commit. */
  deleteEnded(workspaceId: WorkspaceId, runIds: readonly string[]): void {
    this.#store.write((tx) => {
      for (const runId of runIds) {
        if (this.#runs.reader.isInProgress(workspaceId, runId)) continue;
        if (this.#hasAssets(workspaceId, runId)) this.#erase(tx, workspaceId, runId);
        else this.#forget(tx, workspaceId, runId);
      }
    });
  }

  /**
   * Deletes the outputs of the runs before the first run in progress, in this turn's commit. Returns the number of these runs.
   */
  deleteOutputs(workspaceId: WorkspaceId, runIds: readonly string[]): number {
    const first = runIds.findIndex((runId) => this.#runs.reader.isInProgress(workspaceId, runId));
    const ended = first === -1 ? runIds : runIds.slice(0, first);
    this.#store.write((tx) => {
      for (const runId of ended) {
        this.#trim(tx, workspaceId, runId);
        if (this.#hasAssets(workspaceId, runId)) this.#removeLater(tx, workspaceId, runId);
      }
    });
    return ended.length;
  }

  #trim(tx: Transaction, workspaceId: WorkspaceId, runId: string): void {
    // A damaged record is not changed, because its output cannot be read in any case.
    const record = unlessDamaged(() => tx.get(runRecords, workspaceId, runId));
    if (record?.status === 'running') this.#runs.printed.erase(tx, workspaceId, runId);
    const changed = record && trimmed(record);
    if (changed === undefined) return;
    tx.putEncoded(changed, workspaceId, runId);
    tx.remove(runSummaries, workspaceId, runId);
  }

  /** Returns whether a run that has ended, and is committed, has assets. */
  #hasAssets(workspaceId: WorkspaceId, runId: string): boolean {
    return [...this.#store.listKeys(assetRecords, workspaceId, [runId], 1)].length > 0;
  }

  #check(workspaceId: WorkspaceId, runId: string): void {
    if (!this.#runs.reader.exists(workspaceId, runId)) throw notFound();
    this.#runs.actors.checkStored({ workspaceId, id: runId }, { type: 'delete' });
  }

  #erase(tx: Transaction, workspaceId: WorkspaceId, runId: string): void {
    this.#removeLater(tx, workspaceId, runId);
    this.#forget(tx, workspaceId, runId);
  }

  /** Records that the assets of a run, which is still listed, must be removed. */
  #removeLater(tx: Transaction, workspaceId: WorkspaceId, runId: string): void {
    const entry = unlessDamaged(() => tx.get(runIndex, workspaceId, runId));
    const home = (entry ?? sessionIn(tx, workspaceId, runId))?.sessionId;
    this.#removals.add(tx, { kind: RUN, workspaceId, home, id: runId });
  }

  /** Removes all records of a run except its assets. */
  #forget(
    tx: Transaction,
    workspaceId: WorkspaceId,
    runId: string,
    sessionOf = () => sessionIn(tx, workspaceId, runId),
  ): void {
    removeFromIndex(tx, workspaceId, runId, sessionOf);
    tx.remove(runRecords, workspaceId, runId);
    tx.remove(runSummaries, workspaceId, runId);
    this.#runs.printed.erase(tx, workspaceId, runId);
    this.#runs.actors.erase(tx, { workspaceId, id: runId });
  }

  #removeAssets(workspaceId: string, runId: string): boolean {
    const keys = [...this.#store.listKeys(assetRecords, workspaceId, [runId], MAX_ASSETS)];
    this.#store.write((tx) => {
      for (const [, assetId = ''] of keys) removeAsset(tx, workspaceId, runId, assetId);
    });
    return keys.length < MAX_ASSETS;
  }
}

/**
 * Returns the session of a run from the run's record, for a run whose entry in the index is damaged. Undefined when the record is
 * damaged or missing, too.
 */
function sessionIn(tx: Transaction, workspaceId: WorkspaceId, runId: string): SessionOfRun | undefined {
  const record = unlessDamaged(() => tx.get(runRecords, workspaceId, runId));
  return record && { kind: record.kind, sessionId: record.sessionId };
}
