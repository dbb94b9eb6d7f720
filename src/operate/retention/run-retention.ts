/**
 * Deletes runs and outputs whose retention time is over. Each step is one small commit. In a server of several
 * workers, each deletes only the runs of notebooks and conversations whose home it is.
 */
import { firstIdAt, type WorkspaceId } from '#src/base/ids.ts';
import type { RunKind } from '#src/contract/wire/run.ts';
import type { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { listOf } from '#src/runtime/runs/run-lists.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import type { CommittedPage } from '#storage/lists/committed-records.ts';
import { runIndex, trimmedRuns } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';

/** How many runs one step examines. */
const MAX_RUNS = 20;
/** How many sessions one step examines. */
const MAX_SESSIONS = 20;
const KINDS: readonly RunKind[] = ['notebook', 'agent'];

/** The cursor where the deletion of outputs resumes: after the runs of this kind in this session. */
export interface OutputsCursor {
  readonly kind: RunKind;
  readonly after: string | undefined;
}

const FIRST: OutputsCursor = { kind: 'notebook', after: undefined };

export class RunRetention {
  readonly #store: Store;
  readonly #deletion: RunDeletion;
  readonly #owns: (workspaceId: string, sessionId: string) => boolean;

  /** Only runs of sessions that `owns` returns true for are deleted or changed. */
  constructor(
    store: Store,
    deletion: RunDeletion,
    owns: (workspaceId: string, sessionId: string) => boolean = () => true,
  ) {
    this.#store = store;
    this.#deletion = deletion;
    this.#owns = owns;
  }

  /**
   * Deletes some runs that were submitted before `ms` (since 1970), after the run `after`. Runs in progress stay. Returns where
   * the next step continues; undefined when there are no more.
   */
  deleteRuns(workspaceId: WorkspaceId, ms: number, after: string | undefined): string | undefined {
    const runs = [...this.#store.list(runIndex, workspaceId, [], this.#olderThan(ms, after))];
    const own = runs.filter(({ value }) => this.#owns(workspaceId, value.sessionId));
    this.#deletion.deleteEnded(
      workspaceId,
      own.map(({ id }) => id),
    );
    return runs.length < MAX_RUNS ? undefined : runs.at(-1)?.id;
  }

  /**
   * Deletes the outputs of some runs that were submitted before `ms`, session by session. The last run looked at is stored for
   * each session, so that no run is looked at twice. Returns where the next step continues; undefined when there are no more.
   */
  deleteOutputs(
    workspaceId: WorkspaceId,
    ms: number,
    cursor: OutputsCursor = FIRST,
  ): OutputsCursor | undefined {
    const { kind } = cursor;
    let { after } = cursor;
    for (let looked = 0; looked < MAX_SESSIONS; looked++) {
      const beyond = after === undefined ? undefined : [after];
      const [[sessionId] = []] = this.#store.listKeys(listOf(kind), workspaceId, [], 1, beyond);
      if (sessionId === undefined) {
        const next = KINDS[KINDS.indexOf(kind) + 1];
        return next === undefined ? undefined : { kind: next, after: undefined };
      }
      if (this.#owns(workspaceId, sessionId)) {
        const count = this.#deleteOutputsOf(kind, workspaceId, sessionId, ms);
        if (count === MAX_RUNS) return { kind, after }; // there may be more of this session
        looked += count;
      }
      after = sessionId;
    }
    return { kind, after };
  }

  /**
   * Deletes some outputs of a session, up to its first run that is in progress, because the output
   * of that run is yet to come. Returns how many were deleted.
   */
  #deleteOutputsOf(kind: RunKind, workspaceId: WorkspaceId, sessionId: string, ms: number): number {
    // If this mark is damaged, the runs are read again from the first one. Runs whose outputs were
    // deleted do not change.
    const after = unlessDamaged(() => this.#store.get(trimmedRuns, workspaceId, kind, sessionId));
    const page = this.#olderThan(ms, after);
    const ids = [...this.#store.list(listOf(kind), workspaceId, [sessionId], page)].map(({ id }) => id);
    const done = this.#deletion.deleteOutputs(workspaceId, ids);
    const last = ids[done - 1];
    if (last !== undefined)
      this.#store.write((tx) => tx.put(trimmedRuns, last, workspaceId, kind, sessionId));
    return done;
  }

  #olderThan(ms: number, after: string | undefined): CommittedPage {
    return { after, until: firstIdAt('run', ms), limit: MAX_RUNS };
  }
}
