/**
 * Decides whether a workspace and its member may begin one more run. Both have limits of runs in progress, over all workers
 * together.
 */

import type { NamedLimit } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Limits } from '#storage/records/workspace-limits.ts';
import { type Permit, type Permits, permitSubject } from '#storage/workspace-permits.ts';

/** The limits of runs in progress, and the permits that enforce them. */
export interface RunPermits {
  /** Returns the limits of a workspace; 0 means no limit. */
  readonly limitsOf: (workspaceId: WorkspaceId) => Pick<Limits, 'runs' | 'runsPerUser'>;
  readonly ofWorkspaces: Permits;
  /** The permits of each member of a workspace (`permitSubject`). */
  readonly ofUsers: Permits;
}

export interface RunInProgress {
  readonly workspaceId: WorkspaceId;
  readonly userId: string | undefined;
}

export const RUN_LIMIT: NamedLimit = { name: 'runs', what: 'runs in progress' };
export const USER_RUN_LIMIT: NamedLimit = { name: 'runsPerUser', what: 'runs in progress', of: 'user' };

export class RunLimits {
  readonly #permits: RunPermits;
  readonly #inProgress: () => Iterable<RunInProgress>;

  /** `inProgress` returns the runs that are in progress in this worker, with the users who have submitted them. */
  constructor(permits: RunPermits, inProgress: () => Iterable<RunInProgress>) {
    this.#permits = permits;
    this.#inProgress = inProgress;
  }

  /** Returns how many runs of the workspace, or of one user in it, are in progress in this worker. */
  inProgress(workspaceId: string, userId?: string): number {
    let count = 0;
    for (const run of this.#inProgress())
      if (run.workspaceId === workspaceId && (userId === undefined || run.userId === userId)) count++;
    return count;
  }

  /** Returns the users who have runs in progress in the workspace in this worker. */
  usersWithRuns(workspaceId: string): Set<string> {
    const users = new Set<string>();
    for (const run of this.#inProgress())
      if (run.workspaceId === workspaceId && run.userId !== undefined) users.add(run.userId);
    return users;
  }

  /**
   * Returns undefined when a run may begin in this turn. Otherwise returns the promise of a permit with which the run may begin.
   * The caller holds the permit until the beginning, and checks again all facts that may have changed meanwhile. Rejects with
   * `quota_exceeded` when the workspace or the user has reached the limit.
   */
  admit(workspaceId: WorkspaceId, userId: string | undefined): Promise<Permit> | undefined {
    const { limitsOf, ofWorkspaces, ofUsers } = this.#permits;
    const { runs, runsPerUser } = limitsOf(workspaceId);
    const user = userId === undefined || runsPerUser === 0 ? undefined : permitSubject(workspaceId, userId);
    const hasRoom =
      (runs === 0 || ofWorkspaces.hasRoom(workspaceId)) && (user === undefined || ofUsers.hasRoom(user));
    return hasRoom ? undefined : this.#take(workspaceId, user);
  }

  /** Takes the user's permit first, so that a user at their own limit never holds a permit that others could use. */
  async #take(workspaceId: WorkspaceId, user: string | undefined): Promise<Permit> {
    const { ofWorkspaces, ofUsers } = this.#permits;
    const own = user === undefined ? undefined : await ofUsers.take(user);
    try {
      const shared = await ofWorkspaces.take(workspaceId);
      return {
        [Symbol.dispose]() {
          shared[Symbol.dispose]();
          own?.[Symbol.dispose]();
        },
      };
    } catch (error) {
      own?.[Symbol.dispose]();
      throw error;
    }
  }
}
