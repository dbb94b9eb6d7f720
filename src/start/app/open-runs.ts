/** Opens the runs of notebooks and agents, with their limits. */

import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { WorkspaceLimits } from '#src/people/auth/workspace-limits.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunEnds } from '#src/runtime/runs/run-ends.ts';
import { RUN_LIMIT, USER_RUN_LIMIT } from '#src/runtime/runs/run-limits.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { SettledRuns } from '#src/runtime/runs/settled-runs.ts';
import type { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import { permitSubject, subjectParts } from '#storage/workspace-permits.ts';
import { NOTEBOOK } from './open-notebooks.ts';
import type { Permits } from './permits.ts';

export interface RunsOptions {
  readonly store: Store;
  readonly cluster: Cluster;
  readonly actors: ActorRuntime;
  readonly removals: Removals;
  readonly permits: Permits;
  readonly limits: Pick<WorkspaceLimits, 'all' | 'of'>;
  readonly metrics: ServerMetrics;
  readonly tracer: Tracer | undefined;
}

/** Returns the runs of this process and their deletion. */
export function openRuns({
  store,
  cluster,
  actors,
  removals,
  permits,
  limits,
  metrics,
  tracer,
}: RunsOptions) {
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
  const runs: RunRepository = new RunRepository(store, actors, {
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
