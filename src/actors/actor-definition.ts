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
  /** The version that snapshots are stored with. A stored snapshot of another version is not read. */
  readonly machineVersion: number;
  /**
   * Reads an actor from records that say all that a restart keeps of it, which their owner writes in the turn in which the
   * actor moves. Absent: the runtime stores a snapshot of each actor.
   */
  readonly storedIn?: (store: Pick<Store, 'get'>, id: ActorId) => ActorSnapshot | undefined;
  /** Whether each actor gets an id that was made for it, so that `spawn` need not look for an earlier one. */
  readonly hasNewIds?: boolean;
  /** An event that the runtime sends to an actor restored from its snapshot, if its state takes the event. */
  readonly restored?: EventFromLogic<Machine>;
  /**
   * Whether actors of other kinds in several workers speak to one of this kind. In a store that is shared it is then spoken to in
   * shared turns only (`Store.decide`), and is in memory for that long: it owns nothing.
   */
  readonly isShared?: boolean;
  /**
   * Returns the ids of the actors of a workspace that have not ended. Needed for a shared kind, because memory does not list its
   * actors.
   */
  readonly openIn?: (workspaceId: string, limit: number) => Iterable<string>;
  /**
   * Returns the id of the notebook or conversation that an actor is at home with. Absent: it is at home with its workspace, unless
   * its kind is shared and so has no home. Only the worker of its home has an actor in memory.
   */
  readonly homeOf?: (context: ContextFrom<Machine>) => string;
  /** Whether the actors of this kind that own something are counted over all workers (`residentsOfAll`). */
  readonly isCounted?: boolean;
  /** Returns the part of a context that operators may see; when absent, they see nothing of it. */
  readonly shown?: (context: ContextFrom<Machine>) => ShownContext;
}

/** Restores the type of `resolveState`, which XState loses for a generic machine. */
interface Restorable<Snapshot> {
  resolveState(stored: { value: unknown; context: unknown }): Snapshot;
}

/** The facts about an actor that need no restoring. */
export interface Peek<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly snapshot: SnapshotFrom<Machine>;
  /** Whether it is in the memory of this process. */
  readonly live: boolean;
  /** Whether a dead process left the actor in a resident state, in which case its resources are gone. */
  readonly isLost: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}
