/** Opens jobs: their states, the decisions at their instants, their attempts, and the clock of this worker. */

import type { AgentPlane } from '#src/agent/open-agents.ts';
import type { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { frontEndPath } from '#src/http/routes/front-end.ts';
import { reportPath } from '#src/http/routes/jobs.ts';
import { Attempts } from '#src/jobs/attempts.ts';
import { Firing } from '#src/jobs/firing.ts';
import { JobStates, jobIdOf } from '#src/jobs/job-states.ts';
import { Jobs } from '#src/jobs/jobs.ts';
import { Reports } from '#src/jobs/reports.ts';
import { Targets } from '#src/jobs/targets.ts';
import { notebookStatusOf } from '#src/notebook/sessions/notebook-session-record.ts';
import type { TimedWork } from '#src/operate/operators/server-gauges.ts';
import { reaches } from '#src/people/auth/permissions.ts';
import { PlaceClock } from '#src/runtime/homes/place-clock.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { conversationRecords } from '#storage/records/conversations.ts';
import { jobPlaces } from '#storage/records/jobs.ts';
import type { Ground } from './ground.ts';
import type { NotebookPlane } from './open-notebooks.ts';

export interface JobPlane {
  readonly jobs: Jobs;
  /** Tells others of occurrences that have ended and of jobs that are paused, in the turns of their commits. */
  readonly states: Pick<JobStates, 'onOccurrence' | 'onPaused'>;
  /** Returns the figures of this worker's jobs for the metrics, without reading from the store. */
  readonly condition: () => TimedWork;
  /** Frees the memory of a deleted workspace. */
  readonly forget: (workspaceId: string) => void;
  /** Yields the slots in which attempts of jobs are in progress. */
  readonly busySlots: () => Iterable<number>;
  /** Ends what dead processes have left, and looks for jobs that are due. Called once everything is open. */
  begin(): void;
}

/** Opens the plane; `stack` ends its timer and its line of attempts. */
export function openJobs(
  ground: Ground & RunPlaneContext & { readonly log: Ground['log']; readonly files: WorkspaceFiles },
  { notebooks, files: notebookFiles, frontEnd, actors, copies, executions, sessions }: NotebookPlane,
  agents: AgentPlane,
  stack: AsyncDisposableStack,
): JobPlane {
  const { cluster, config, files, identity, log, phase, store } = ground;
  const isEnding = () => phase.isDraining;
  const states = new JobStates(ground);
  const targets = new Targets({
    roleOf: (workspaceId, userId) => identity.members.reader(workspaceId, userId)?.role,
    maySubmit: (role) => reaches(role, 'editor'),
    notebookExists: notebooks.exists.bind(notebooks),
    sessionStatus(workspaceId, notebookId) {
      const peek = actors.peek({ workspaceId, id: notebookId });
      return peek && notebookStatusOf(peek);
    },
    conversationExists: (workspaceId, sessionId) => store.has(conversationRecords, workspaceId, sessionId),
    checkUse(caller, sessionId) {
      agents.access.usable(caller, sessionId);
    },
    mayKnow: agents.mayKnow,
    agentStatus: agents.statusOf,
  });
  const reports = new Reports(ground, states, {
    files: notebookFiles,
    pathOf: reportPath,
    isEnding,
    // Without a public address nobody knows from where the page will be opened, so it loads its front end from a public one.
    assetUrl: () =>
      config.publicUrl === undefined ? undefined : config.publicUrl + frontEndPath(frontEnd.version()),
  });
  const attempts = stack.use(
    new Attempts(ground, states, targets, reports, {
      copies,
      executions,
      sessions,
      admitFiles: (workspaceId) => files.quota.admitSession(workspaceId),
      prompt: (...prompt) => agents.prompts.submit(...prompt),
      stopRun: (kind, ...run) => (kind === 'agent' ? agents.prompts : executions).cancel(...run),
      isEnding,
    }),
  );
  const firing = new Firing(ground, states, attempts, targets);
  const clock = stack.use(
    new PlaceClock({
      store,
      log,
      index: jobPlaces,
      isHere(workspaceId, jobId) {
        const homeId = states.find(workspaceId, jobId)?.record.homeId;
        return homeId === undefined || cluster.owns(workspaceId, homeId);
      },
      placeOf: states.placeOf.bind(states),
      attend: (workspaceId, jobId, nowMs) => firing.attend(jobIdOf(workspaceId, jobId), nowMs),
      isEnding,
    }),
  );
  states.onPlace((moved) => clock.note(moved));
  return {
    condition: () => ({ overdueS: clock.overdueMs(Date.now()) / 1000, counts: states.tally.counts() }),
    forget: (workspaceId) => states.tally.forget(workspaceId),
    jobs: new Jobs(ground, states, firing, targets, (workspaceId) => identity.limits.of(workspaceId, 'jobs')),
    states,
    busySlots: () => attempts.busySlots(),
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
