/** Opens jobs: their states, the decisions at their instants, their attempts, and the clock of this worker. */

import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { Attempts } from '#src/jobs/attempts.ts';
import { Firing } from '#src/jobs/firing.ts';
import { JobClock } from '#src/jobs/job-clock.ts';
import { JobStates } from '#src/jobs/job-states.ts';
import { Jobs } from '#src/jobs/jobs.ts';
import type { JobsCondition } from '#src/operate/operators/server-gauges.ts';
import { reaches } from '#src/people/auth/permissions.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { Ground } from './ground.ts';
import type { NotebookPlane } from './open-notebooks.ts';

export interface JobPlane {
  readonly jobs: Jobs;
  /** Tells others of occurrences that have ended and of jobs that are paused, in the turns of their commits. */
  readonly states: Pick<JobStates, 'onOccurrence' | 'onPaused'>;
  /** Returns the figures of this worker's jobs for the metrics, without reading from the store. */
  readonly condition: () => JobsCondition;
  /** Frees the memory of a deleted workspace. */
  readonly forget: (workspaceId: string) => void;
  /** Ends what dead processes have left, and looks for jobs that are due. Called once everything is open. */
  begin(): void;
}

/** Opens the plane; `stack` ends its timer. */
export function openJobs(
  ground: Ground & RunPlaneContext & { readonly log: Ground['log'] },
  notebooks: Pick<NotebookPlane, 'notebooks' | 'copies' | 'executions'>,
  stack: AsyncDisposableStack,
): JobPlane {
  const { cluster, identity, phase, store } = ground;
  const isEnding = () => phase.isDraining;
  const notebookExists = notebooks.notebooks.exists.bind(notebooks.notebooks);
  const states = new JobStates(ground);
  const { copies, executions } = notebooks;
  const attempts = new Attempts(ground, states, { copies, executions, isEnding });
  const firing = new Firing(ground, states, attempts, {
    roleOf: (workspaceId, userId) => identity.members.reader(workspaceId, userId)?.role,
    maySubmit: (role) => reaches(role, 'editor'),
    notebookExists,
  });
  const attend = firing.attend.bind(firing);
  const clock = stack.use(new JobClock(ground, states, { attend, isEnding }));
  return {
    condition: () => ({ overdueS: clock.overdueMs(Date.now()) / 1000, ...states.tally.counts() }),
    forget: (workspaceId) => states.tally.forget(workspaceId),
    jobs: new Jobs(ground, states, firing, notebookExists),
    states,
    begin() {
      if (store.isReadOnly) return;
      const look = () => {
        attempts.recover();
        clock.look();
        states.tally.load();
      };
      look();
      cluster.onSlotsTaken(look);
    },
  };
}
