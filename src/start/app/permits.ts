/** The permits that enforce limits of a workspace over all workers. */

import { type NamedLimit, overQuota } from '#src/base/errors/quota.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Cluster, Topic } from '#src/runtime/homes/cluster.ts';
import type { LimitOf } from '#storage/records/workspace-limits.ts';
import type { Store } from '#storage/store.ts';
import {
  type Permits as ProcessPermits,
  subjectParts,
  WorkspacePermits,
} from '#storage/workspace-permits.ts';

export interface PermitsOptions {
  /** The topic by which workers ask each other to give back unused permits of a workspace. */
  readonly topic: Topic;
  readonly limit: LimitOf;
  /** The name of the limit, for the client. Permits of users are by workspace and user (`permitSubject`). */
  readonly named: NamedLimit;
  /** Returns how many of these things the workspace, or a user in it, has in this worker. */
  readonly inUse: (subject: string) => number;
  /** Returns the subjects that use permits in this worker; absent: the workspace itself. */
  readonly subjectsIn?: SubjectsIn;
}

type SubjectsIn = (workspaceId: string) => readonly string[];

/** Opens the permits of each limit, and releases them for deleted workspaces. */
export class ServerPermits {
  readonly #store: Store;
  readonly #cluster: Cluster;
  readonly #opened: { readonly permits: WorkspacePermits; readonly subjectsIn: SubjectsIn }[] = [];

  constructor(store: Store, cluster: Cluster) {
    this.#store = store;
    this.#cluster = cluster;
  }

  /** Returns the permits of this process. */
  open({
    topic,
    limit,
    named,
    inUse,
    subjectsIn = (workspaceId) => [workspaceId],
  }: PermitsOptions): ProcessPermits {
    const cluster = this.#cluster;
    const { incarnation, size } = cluster;
    const limitOf = (subject: string) => limit(subjectParts(subject)[0] as WorkspaceId);
    if (incarnation === undefined) return countedPermits(named, limitOf, inUse);
    const permits = new WorkspacePermits({
      store: this.#store,
      kind: topic,
      limit: limitOf,
      workers: size,
      own: incarnation,
      livesElsewhere: (worker) => cluster.livesElsewhere(worker),
      inUse,
      collect: (workspaceId) => cluster.askOthers(topic, workspaceId),
      refusal: (max) => overQuota(named, max),
    });
    cluster.onAsked(topic, (workspaceId) => permits.giveBack(String(workspaceId)));
    this.#opened.push({ permits, subjectsIn });
    return permits;
  }

  /** Releases all permits of a deleted workspace and of its users. */
  forget(workspaceId: string): void {
    for (const [permits, subject] of this.#knownOf(workspaceId)) permits.forget(subject);
  }

  /** Counts what exists in this worker again, because the limits of the workspace have changed. */
  async settle(workspaceId: string): Promise<void> {
    await Promise.all(this.#knownOf(workspaceId).map(([permits, subject]) => permits.settle(subject)));
  }

  /** Returns the permits of the workspace in this worker, each with its key. */
  #knownOf(workspaceId: string): (readonly [WorkspacePermits, string])[] {
    return this.#opened.flatMap(({ permits, subjectsIn }) => {
      const known = permits.known.filter((subject) => subjectParts(subject)[0] === workspaceId);
      return [...new Set([...subjectsIn(workspaceId), ...known])].map(
        (subject) => [permits, subject] as const,
      );
    });
  }
}

/** Returns the permits of the only process, which are none: a count in the turn in which an object begins is exact. */
function countedPermits(
  named: NamedLimit,
  limitOf: (subject: string) => number,
  inUse: (subject: string) => number,
): ProcessPermits {
  const hasRoom = (subject: string) => {
    const max = limitOf(subject);
    return max === 0 || inUse(subject) < max;
  };
  return {
    hasRoom,
    take(subject) {
      if (!hasRoom(subject)) throw overQuota(named, limitOf(subject));
      return { [Symbol.dispose]: () => undefined };
    },
  };
}
