import { environmentMachine, environmentStatus } from '#machines/environment.ts';
import type { ActorKind, Peek } from '#src/actors/actor-kind.ts';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import { notFound } from '#src/core/errors.ts';
import { type EnvironmentId, newId, type WorkspaceId } from '#src/core/ids.ts';

export type EnvironmentActors = ActorKind<typeof environmentMachine>;

/** An execution environment as it is served. */
export interface EnvironmentRecord {
  readonly environmentId: string;
  readonly status: 'open' | 'closed';
  readonly notebookSessionId: string | null;
  readonly agentSessionIds: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Execution environments: created, read, closed. Sessions attach to them by way of their actors. */
export class Environments {
  readonly actors: EnvironmentActors;

  constructor(runtime: ActorRuntime) {
    this.actors = runtime.define({ kind: 'environment', machine: environmentMachine, machineVersion: 1 });
  }

  create(workspaceId: WorkspaceId): EnvironmentRecord {
    const environmentId = newId<EnvironmentId>('environment');
    this.actors.spawn({ workspaceId, id: environmentId }, { workspaceId, environmentId });
    return this.record(workspaceId, environmentId);
  }

  /** Throws `not_found`. */
  record(workspaceId: WorkspaceId, environmentId: string): EnvironmentRecord {
    const peek = this.actors.peek({ workspaceId, id: environmentId });
    if (peek === undefined) throw notFound();
    return recordOf(peek);
  }

  /** Throws `environment_in_use` while sessions are attached, `environment_closed` when it already is. */
  close(workspaceId: WorkspaceId, environmentId: string): EnvironmentRecord {
    this.actors.ask({ workspaceId, id: environmentId }, { type: 'close' });
    return this.record(workspaceId, environmentId);
  }
}

function recordOf({ snapshot, createdAt, updatedAt }: Peek<typeof environmentMachine>): EnvironmentRecord {
  const { environmentId, notebookSessionId, agentSessionIds } = snapshot.context;
  const status = environmentStatus(snapshot);
  return { environmentId, status, notebookSessionId, agentSessionIds, createdAt, updatedAt };
}
