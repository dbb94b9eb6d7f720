/** Opens the runs of notebooks and agents, with their limits. */

import { NOTEBOOK } from '#src/notebook/requests/notebook-deletion.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunEnds } from '#src/runtime/runs/run-ends.ts';
import { RUN_LIMIT, USER_RUN_LIMIT } from '#src/runtime/runs/run-limits.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { SettledRuns } from '#src/runtime/runs/settled-runs.ts';
import { permitSubject, subjectParts } from '#storage/workspace-permits.ts';
import type { Ground } from './ground.ts';

/** Returns the runs of this process and their deletion. */
export function openRuns({ store, cluster, runtime, removals, permits, identity, metrics, tracer }: Ground) {
  const { limits } = identity;
  const ofWorkspaces = permits.open({
    topic: 'run-permits',
    limit: (workspaceId) => limits.of(workspaceId, 'runs'),
    named: RUN_LIMIT,
    inUse: (workspaceId) => runs.limits.inProgress(workspaceId),
  });
  const ofUsers = permits.open({
    topic: 'user-run-permits',
    limit: (workspaceId) => limits.of(workspaceId, 'runsPerUser'),
    named: USER_RUN_LIMIT,
    inUse: (subject) => runs.limits.inProgress(...subjectParts(subject)),
    subjectsIn: (workspaceId) =>
      [...runs.limits.usersWithRuns(workspaceId)].map((userId) => permitSubject(workspaceId, userId)),
  });
  const runs: RunRepository = new RunRepository(store, runtime, {
    limits: {
      limitsOf: (workspaceId) => limits.all(workspaceId),
      ofWorkspaces,
      ofUsers,
    },
    metrics,
    tracer,
    isDeleted: (workspaceId, sessionId) =>
      removals.isPending({ kind: NOTEBOOK, workspaceId, home: sessionId, id: sessionId }),
    ends: new RunEnds(store, cluster),
    settled: cluster.size > 1 ? new SettledRuns(store, cluster) : undefined,
  });
  return { runs, runDeletion: new RunDeletion(store, runs, removals) };
}
