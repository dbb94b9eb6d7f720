/** Deletes runs and outputs that are older than they are to be kept. Each step is one small commit. */
import { firstIdAt, type WorkspaceId } from '#src/core/ids.ts';
import { runIndex, trimmedRuns } from '#storage/runs.ts';
import type { Store } from '#storage/store.ts';
import type { RunDeletion } from './run-deletion.ts';

/** Runs that are looked at in one step. */
const MAX_RUNS = 20;

export class RunRetention {
  readonly #store: Store;
  readonly #deletion: RunDeletion;

  constructor(store: Store, deletion: RunDeletion) {
    this.#store = store;
    this.#deletion = deletion;
  }

  /**
   * Deletes some runs that were submitted before `ms` (since 1970), after the run `after`. Runs in progress stay. Returns
   * where the next step goes on; undefined when there are no more.
   */
  deleteRuns(workspaceId: WorkspaceId, ms: number, after: string | undefined): string | undefined {
    const ids = this.#olderThan(workspaceId, ms, after);
    this.#deletion.deleteEnded(workspaceId, ids);
    return ids.length < MAX_RUNS ? undefined : ids.at(-1);
  }

  /**
   * Deletes the outputs of some runs that were submitted before `ms`. Where the last one stopped is stored, so that no run
   * is looked at twice. Returns whether there may be more.
   */
  deleteOutputs(workspaceId: WorkspaceId, ms: number): boolean {
    const ids = this.#olderThan(workspaceId, ms, this.#store.get(trimmedRuns, workspaceId));
    // Up to the first that is still in progress: its output is yet to come.
    const done = this.#deletion.deleteOutputs(workspaceId, ids);
    const last = ids[done - 1];
    if (last !== undefined) this.#store.write((tx) => tx.put(trimmedRuns, last, workspaceId));
    return done === MAX_RUNS;
  }

  #olderThan(workspaceId: WorkspaceId, ms: number, after: string | undefined): string[] {
    const page = { after, until: firstIdAt('run', ms), limit: MAX_RUNS };
    return [...this.#store.list(runIndex, workspaceId, [], page)].map(({ id }) => id);
  }
}
