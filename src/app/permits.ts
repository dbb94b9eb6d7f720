/** The permits by which limits of a workspace hold over all workers. */
import type { Cluster, Topic } from '#src/cluster/cluster.ts';
import { overQuota } from '#src/core/quota.ts';
import type { Store } from '#storage/store.ts';
import { WorkspacePermits } from '#storage/workspace-permits.ts';

export interface PermitsOptions {
  /** What the workers ask each other: to give back what they do not use in a workspace. */
  readonly topic: Topic;
  /** 0 means no limit. */
  readonly limit: number;
  /** What the limit is of, for the client. */
  readonly what: string;
  /** Returns how many of these the workspace has in this worker. */
  readonly inUse: (workspaceId: string) => number;
}

/** Opens the permits of each limit, and gives them up for workspaces that are deleted. */
export class Permits {
  readonly #store: Store;
  readonly #cluster: Cluster;
  readonly #opened: WorkspacePermits[] = [];

  constructor(store: Store, cluster: Cluster) {
    this.#store = store;
    this.#cluster = cluster;
  }

  /** Returns the permits; undefined without a limit, and in a server of one process, which only has to count. */
  open({ topic, limit, what, inUse }: PermitsOptions): WorkspacePermits | undefined {
    const cluster = this.#cluster;
    const { incarnation, size } = cluster;
    if (limit === 0 || incarnation === undefined) return undefined;
    const permits = new WorkspacePermits({
      store: this.#store,
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
    this.#opened.push(permits);
    return permits;
  }

  /** Gives up all permits of a workspace that is deleted. */
  forget(workspaceId: string): void {
    for (const permits of this.#opened) permits.forget(workspaceId);
  }
}
