import { setImmediate as nextTurn } from 'node:timers/promises';
import { environmentMachine, environmentStatus } from '#machines/environment.ts';
import { notFound } from '#src/base/errors/errors.ts';
import { type EnvironmentId, isIdOf, type WorkspaceId } from '#src/base/ids.ts';
import type { EnvironmentFilters } from '#src/contract/wire/lists.ts';
import type { Environment } from '#src/contract/wire/session.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import type { Entry } from '#storage/lists/committed-records.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { checkCursor, idBounds, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import { slicedListing } from '#storage/lists/sliced-listing.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import { openEnvironments } from '#storage/records/sessions.ts';
import type { Store } from '#storage/store.ts';
import type { Peek } from '../actors/actor-definition.ts';
import type { ActorKind } from '../actors/actor-kind.ts';
import type { ActorRuntime } from '../actors/runtime.ts';

export type EnvironmentActors = ActorKind<typeof environmentMachine>;

/** The filters of a list of environments. An absent member does not filter. */
export type EnvironmentQuery = PageRequest & EnvironmentFilters;

/** The kind of the actors of environments. */
const ENVIRONMENT = 'environment';

/** How many environments are examined in one turn of the event loop. */
const MAX_PEEKED = 100;
/** How many environments are examined in one shared turn, in which no other worker can commit. */
const MAX_PEEKED_AT_ONCE = 1000;

/**
 * Creates, reads and closes execution environments. Sessions attach to the actor of an environment. Sessions of several workers
 * may want the same environment, so changes of an environment are made in a shared turn.
 */
export class Environments {
  readonly actors: EnvironmentActors;
  readonly #store: Store;

  constructor(runtime: ActorRuntime, store: Store) {
    this.#store = store;
    this.actors = runtime.define({
      kind: ENVIRONMENT,
      machine: environmentMachine,
      machineVersion: 1,
      isShared: true,
      hasNewIds: true,
      openIn: (workspaceId, limit) =>
        [...store.list(openEnvironments, workspaceId, [], { limit })].map(({ id }) => id),
      shown: ({ notebookSessionId, agentSessionIds }) => ({
        links: [
          ...(notebookSessionId === null ? [] : [{ kind: 'notebook-session', id: notebookSessionId }]),
          ...agentSessionIds.map((id) => ({ kind: 'agent-session', id })),
        ],
        context: { agentSessions: agentSessionIds.length },
      }),
    });
  }

  /** Throws `not_found` when the workspace has been deleted. */
  create(workspaceId: WorkspaceId): Environment {
    if (!workspaceExists(this.#store, workspaceId)) throw notFound();
    const all = { kind: actorSnapshots, partition: workspaceId, prefix: [ENVIRONMENT] };
    const environmentId = newListedId<EnvironmentId>(this.#store, 'environment', [all]);
    this.actors.spawn({ workspaceId, id: environmentId }, { workspaceId, environmentId });
    this.#store.write((tx) => tx.mark(openEnvironments, workspaceId, environmentId));
    return this.record(workspaceId, environmentId);
  }

  /** Throws `not_found`. */
  record(workspaceId: WorkspaceId, environmentId: string): Environment {
    const peek = this.actors.peek({ workspaceId, id: environmentId });
    if (peek === undefined) throw notFound();
    return recordOf(peek);
  }

  /** Resolves with a page of environments, without restoring their actors. Rejects with `invalid_cursor`. */
  async list(workspaceId: WorkspaceId, query: EnvironmentQuery): Promise<Listing<Environment>> {
    checkCursor(query.after, (text) => isIdOf('environment', text));
    const bounds = idBounds('environment', query);
    return slicedListing(this.#store, {
      page: query,
      workspaceId,
      entriesAfter: (after): Iterable<Entry<unknown>> => {
        const page = pageOf({ ...query, after }, bounds);
        return query.status === 'open'
          ? this.#store.list(openEnvironments, workspaceId, [], page)
          : this.#store.list(actorSnapshots, workspaceId, [ENVIRONMENT], page);
      },
      itemOf: (_, id) => {
        const peek = this.actors.peek({ workspaceId, id });
        const record = peek === undefined ? undefined : recordOf(peek);
        return query.status === undefined || record?.status === query.status ? record : undefined;
      },
    });
  }

  /**
   * Resolves with whether a session is attached to an environment of the workspace. Each turn examines some environments.
   */
  async areInUse(workspaceId: WorkspaceId): Promise<boolean> {
    for (let after: string | undefined; ; await nextTurn()) {
      const ids = this.#openIds(workspaceId, MAX_PEEKED, after);
      if (ids.some((id) => this.#isInUse(workspaceId, id))) return true;
      if (ids.length < MAX_PEEKED) return false;
      after = ids.at(-1);
    }
  }

  /**
   * Returns at once whether a session is attached to one of the first environments of the workspace. In a shared turn the result
   * is exact, unless the workspace has more than `MAX_PEEKED_AT_ONCE` environments.
   */
  areInUseNow(workspaceId: WorkspaceId): boolean {
    return this.#openIds(workspaceId, MAX_PEEKED_AT_ONCE).some((id) => this.#isInUse(workspaceId, id));
  }

  #openIds(workspaceId: WorkspaceId, limit: number, after?: string): string[] {
    return [...this.#store.list(openEnvironments, workspaceId, [], { after, limit })].map(({ id }) => id);
  }

  #isInUse(workspaceId: WorkspaceId, id: string): boolean {
    const context = unlessDamaged(() => this.actors.peek({ workspaceId, id })?.snapshot.context);
    if (context === undefined) return false;
    return context.notebookSessionId !== null || context.agentSessionIds.length > 0;
  }

  /**
   * Closes an environment. Throws `environment_in_use` while sessions are attached, and `environment_closed` when it is already
   * closed.
   */
  close(workspaceId: WorkspaceId, environmentId: string): Environment {
    this.actors.ask({ workspaceId, id: environmentId }, { type: 'close' });
    this.#store.write((tx) => tx.remove(openEnvironments, workspaceId, environmentId));
    return this.record(workspaceId, environmentId);
  }
}

function recordOf({ snapshot, createdAt, updatedAt }: Peek<typeof environmentMachine>): Environment {
  const { environmentId, notebookSessionId, agentSessionIds } = snapshot.context;
  const status = environmentStatus(snapshot);
  return { environmentId, status, notebookSessionId, agentSessionIds, createdAt, updatedAt };
}
