import { type EnvironmentContext, environmentMachine, environmentStatus } from '#machines/environment.ts';
import type { Address } from '#src/actors/address.ts';
import type { ActorRuntime, Peek } from '#src/actors/runtime.ts';
import { notFound } from '#src/core/errors.ts';
import { type EnvironmentId, newId, type WorkspaceId } from '#src/core/ids.ts';

export interface EnvironmentRecord {
  readonly environmentId: string;
  readonly status: 'open' | 'closed';
  readonly notebookSessionId: string | null;
  readonly agentSessionIds: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Execution environments: made, looked at, closed. */
export class Environments {
  readonly #actors: ActorRuntime;

  constructor(actors: ActorRuntime) {
    this.#actors = actors;
    actors.define({ kind: 'environment', machine: environmentMachine, machineVersion: 1 });
  }

  create(workspaceId: WorkspaceId): EnvironmentRecord {
    const environmentId = newId<EnvironmentId>('environment');
    const address = environmentAddress(workspaceId, environmentId);
    this.#actors.spawn(address, { workspaceId, environmentId });
    return this.record(workspaceId, environmentId);
  }

  /** Throws `not_found`. */
  record(workspaceId: WorkspaceId, environmentId: string): EnvironmentRecord {
    const peek = this.#actors.peek(environmentAddress(workspaceId, environmentId));
    if (peek === undefined) throw notFound();
    return recordOf(peek);
  }

  /** Throws `environment_in_use` while sessions are attached, `environment_closed` when it already is. */
  close(workspaceId: WorkspaceId, environmentId: string): EnvironmentRecord {
    this.#actors.ask(environmentAddress(workspaceId, environmentId), { type: 'close' });
    return this.record(workspaceId, environmentId);
  }
}

export function environmentAddress(workspaceId: WorkspaceId, environmentId: string): Address {
  return { workspaceId, kind: 'environment', id: environmentId };
}

function recordOf({ snapshot, createdAt, updatedAt }: Peek): EnvironmentRecord {
  const { environmentId, notebookSessionId, agentSessionIds } = snapshot.context as EnvironmentContext;
  const status = environmentStatus(snapshot as Parameters<typeof environmentStatus>[0]);
  return { environmentId, status, notebookSessionId, agentSessionIds, createdAt, updatedAt };
}
