/** The definition of a kind of actor, and the facts about one of its actors. */
import type { AnyStateMachine, ContextFrom, EventFromLogic, SnapshotFrom } from 'xstate';
import type { ActorSnapshot } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import type { ActorId } from './address.ts';
import type { ShownContext } from './inspected-actor.ts';

/** One kind of actor. */
export interface ActorDefinition<Machine extends AnyStateMachine> {
  readonly kind: string;
  /** The chart with every port provided. */
  readonly machine: Restorable<SnapshotFrom<Machine>> & Machine;
  /** The version of the stored snapshots. A stored snapshot of another version is not read. */
  readonly machineVersion: number;
  /**
   * Reads an actor from records that contain everything that a restart needs. The owner of the records writes them in the turn in
   * which the actor moves. If absent, the runtime stores a snapshot of each actor.
   */
  readonly storedIn?: (store: Pick<Store, 'get'>, id: ActorId) => ActorSnapshot | undefined;
  /** Whether the id of each actor is newly made, so that `spawn` need not look for an earlier actor with the id. */
  readonly hasNewIds?: boolean;
  /** An event that the runtime sends to an actor restored from its snapshot, if its state takes the event. */
  readonly restored?: EventFromLogic<Machine>;
  /**
   * Whether actors in several workers send commands to this kind. Commands to its actors are sent only in shared turns
   * (`Store.decide`). After the turn these actors leave memory, so they own nothing.
   */
  readonly isShared?: boolean;
  /**
   * Returns the ids of the actors of a workspace that have not ended. A shared kind needs this, because its actors are not in
   * memory.
   */
  readonly openIn?: (workspaceId: string, limit: number) => Iterable<string>;
  /**
   * Returns the id of the notebook or conversation whose home the actor shares. If absent, the actor shares the home of its
   * workspace. An actor of a shared kind has no home; any other actor is only in the memory of its home.
   */
  readonly homeOf?: (context: ContextFrom<Machine>) => string;
  /** Whether the actors of this kind that own something are counted over all workers (`residentsOfAll`). */
  readonly isCounted?: boolean;
  /** Returns further facts for the refusal of an event with this code; undefined when the code has none. */
  readonly refused?: (
    code: string,
    context: ContextFrom<Machine>,
    event: EventFromLogic<Machine>['type'],
  ) => RefusalFacts | undefined;
  /** Returns the members of a context that operators may see. If absent, operators see no members. */
  readonly shown?: (context: ContextFrom<Machine>) => ShownContext;
}

/** Facts about a refusal in addition to its code. */
export interface RefusalFacts {
  /** A sentence for people. */
  readonly text: string;
  /** Members of the problem document. */
  readonly members: Readonly<Record<string, unknown>>;
}

/** Restores the type of `resolveState`, which XState loses for a generic machine. */
interface Restorable<Snapshot> {
  resolveState(stored: { value: unknown; context: unknown }): Snapshot;
}

/** The facts about an actor that need no restoring. */
export interface Peek<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly snapshot: SnapshotFrom<Machine>;
  /** Whether the actor is in the memory of this process. */
  readonly live: boolean;
  /** Whether the actor was in a resident state when its process died, so that its resources are gone. */
  readonly isLost: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}
