/** Whether a workspace may begin one more run: it has a limit of runs in progress, of all workers together. */
import type { WorkspaceId } from '#src/core/ids.ts';
import { countOf, refuseOverQuota } from '#src/core/quota.ts';
import type { Permit, WorkspacePermits } from '#storage/workspace-permits.ts';

export interface RunAdmissionOptions {
  /** How many runs of a workspace may be in progress; 0 means no limit. */
  readonly limit: number;
  /** Permits for runs in progress, in a server of several workers with a limit. */
  readonly permits: Pick<WorkspacePermits, 'take'> | undefined;
  /** Returns the runs that are in progress in this worker. */
  readonly inProgress: () => Iterable<{ readonly workspaceId: WorkspaceId }>;
}

/** What the limit is of. */
export const RUNS_IN_PROGRESS = 'runs in progress';

export class RunAdmission {
  readonly #options: RunAdmissionOptions;

  constructor(options: RunAdmissionOptions) {
    this.#options = options;
  }

  /** Returns how many runs of the workspace are in progress in this worker. */
  inProgress(workspaceId: string): number {
    return countOf(this.#options.inProgress(), workspaceId as WorkspaceId);
  }

  /** Throws `quota_exceeded` when the workspace has its maximum of runs in progress. With permits, `reserve` decides that. */
  admit(workspaceId: WorkspaceId): void {
    const { limit, permits } = this.#options;
    if (permits === undefined) refuseOverQuota(RUNS_IN_PROGRESS, limit, () => this.inProgress(workspaceId));
  }

  /**
   * Returns a permit to hold until the run has begun, in a promise when other workers have to be asked; undefined when none is
   * needed. `check` throws what is to be refused before the limit is looked at. Who waits has to check again after that: others
   * that have waited as well may have begun in the same turn. Throws what `check` throws, and rejects with `quota_exceeded`.
   */
  reserve(workspaceId: WorkspaceId, check: () => void): Permit | Promise<Permit> | undefined {
    const { permits } = this.#options;
    if (permits === undefined) return undefined;
    check();
    return permits.take(workspaceId);
  }
}
