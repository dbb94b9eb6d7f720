/** Opens the permits by which a limit of a workspace holds over all workers. */
import type { Cluster, Topic } from '#src/cluster/cluster.ts';
import { overQuota } from '#src/core/quota.ts';
import type { Store } from '#storage/store.ts';
import { WorkspacePermits } from '#storage/workspace-permits.ts';

export interface PermitsOptions {
  readonly store: Store;
  readonly cluster: Cluster;
  /** What the workers ask each other: to give back what they do not use in a workspace. */
  readonly topic: Topic;
  /** 0 means no limit. */
  readonly limit: number;
  /** What the limit is of, for the client. */
  readonly what: string;
  /** Returns how many of these the workspace has in this worker. */
  readonly inUse: (workspaceId: string) => number;
}

/** Returns the permits; undefined without a limit, and in a server of one process, which only has to count. */
export function openPermits(options: PermitsOptions): WorkspacePermits | undefined {
  const { store, cluster, topic, limit, what, inUse } = options;
  const { incarnation, size } = cluster;
  if (limit === 0 || incarnation === undefined) return undefined;
  const permits = new WorkspacePermits({
    store,
    kind: topic,
    limit,
    workers: size,
    own: incarnation,
    livesElsewhere: (worker) => cluster.livesElsewhere(worker),
    inUse,
    collect: (workspaceId) => cluster.askOthers(topic, workspaceId),
    refusal: () => overQuota(what, limit),
  });
  cluster.onAsked(topic, (workspaceId) => permits.giveBack(String(workspaceId)));
  return permits;
}
