/**
 * Whether a workspace, and a member of it, may begin one more run: both have limits of runs in progress, of all workers together.
 */

import { type NamedLimit, refuseOverQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Limits } from '#storage/records/workspace-limits.ts';
import { type Permit, permitSubject, type WorkspacePermits } from '#storage/workspace-permits.ts';

type Permits = Pick<WorkspacePermits, 'take'>;

export interface RunLimitsOptions {
  /** Returns the limits of a workspace; 0 means no limit. */
  readonly limitsOf: (workspaceId: WorkspaceId) => Pick<Limits, 'runs' | 'runsPerUser'>;
  /** Permits for runs in progress, in a server of several workers. */
  readonly permits: { readonly ofWorkspaces: Permits; readonly ofUsers: Permits } | undefined;
  /** Returns the runs that are in progress in this worker, with the users who have submitted them. */
  readonly inProgress: () => Iterable<RunInProgress>;
}

export interface RunInProgress {
  readonly workspaceId: WorkspaceId;
  readonly userId: string | undefined;
}

export const RUN_LIMIT: NamedLimit = { name: 'runs', what: 'runs in progress' };
export const USER_RUN_LIMIT: NamedLimit = { name: 'runsPerUser', what: 'runs in progress', of: 'user' };

export class RunLimits {
  readonly #options: RunLimitsOptions;

  constructor(options: RunLimitsOptions) {
    this.#options = options;
  }

  /** Returns how many runs of the workspace, or of one user in it, are in progress in this worker. */
  inProgress(workspaceId: string, userId?: string): number {
    let count = 0;
    for (const run of this.#options.inProgress())
      if (run.workspaceId === workspaceId && (userId === undefined || run.userId === userId)) count++;
    return count;
  }

  /** Returns the users who have runs in progress in the workspace in this worker. */
  usersWithRuns(workspaceId: string): Set<string> {
    const users = new Set<string>();
    for (const run of this.#options.inProgress())
      if (run.workspaceId === workspaceId && run.userId !== undefined) users.add(run.userId);
    return users;
  }

  /**
   * Throws `quota_exceeded` when the workspace, or the user in it, has the most runs in progress that it may. With permits, `reserve`
   * decides that.
   */
  admit(workspaceId: WorkspaceId, userId: string | undefined): void {
    const { limitsOf, permits } = this.#options;
    if (permits !== undefined) return;
    const { runs, runsPerUser } = limitsOf(workspaceId);
    refuseOverQuota(RUN_LIMIT, runs, () => this.inProgress(workspaceId));
    if (userId === undefined) return;
    refuseOverQuota(USER_RUN_LIMIT, runsPerUser, () => this.inProgress(workspaceId, userId));
  }

  /**
   * Returns a permit to hold until the run has begun, in a promise when other workers have to be
   * asked; undefined when none is needed. `check` throws refusals that come before the limits. A
   * caller that has waited must check again, because other callers that waited may have begun a run
   * in the same turn. Throws the error of `check`, and rejects with `quota_exceeded`.
   */
  reserve(
    workspaceId: WorkspaceId,
    userId: string | undefined,
    check: () => void,
  ): Permit | Promise<Permit> | undefined {
    const { permits } = this.#options;
    if (permits === undefined) return undefined;
    check();
    const { ofWorkspaces, ofUsers } = permits;
    if (userId === undefined) return ofWorkspaces.take(workspaceId);
    const own = ofUsers.take(permitSubject(workspaceId, userId));
    if (own instanceof Promise) return own.then((permit) => both(permit, ofWorkspaces.take(workspaceId)));
    return both(own, ofWorkspaces.take(workspaceId));
  }
}

/** Returns one permit that stands for two. The first is given back when the second is refused. */
function both(first: Permit, second: Permit | Promise<Permit>): Permit | Promise<Permit> {
  if (second instanceof Promise)
    return second.then(
      (permit) => both(first, permit),
      (error) => {
        first[Symbol.dispose]();
        throw error;
      },
    );
  return {
    [Symbol.dispose]() {
      second[Symbol.dispose]();
      first[Symbol.dispose]();
    },
  };
}
