/** The stored states of the actors of one kind, whichever worker has the actors in memory. Reading a state restores no actor. */
import type { AnyMachineSnapshot, AnyStateMachine, SnapshotFrom } from 'xstate';
import { type ActorSnapshot, actorSnapshots } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import type { ActorDefinition, Peek } from './actor-definition.ts';
import type { ActorOwners } from './actor-owners.ts';
import type { ActorId } from './address.ts';
import { homeIdOf } from './own-actor.ts';

export class StoredActors<Machine extends AnyStateMachine> {
  readonly #definition: ActorDefinition<Machine>;
  readonly #store: Pick<Store, 'get'>;
  readonly #owners: ActorOwners;

  constructor(definition: ActorDefinition<Machine>, store: Pick<Store, 'get'>, owners: ActorOwners) {
    this.#definition = definition;
    this.#store = store;
    this.#owners = owners;
  }

  /** Returns the stored state of an actor; undefined when there is none. */
  get({ workspaceId, id }: ActorId): ActorSnapshot | undefined {
    const { storedIn, kind } = this.#definition;
    if (storedIn !== undefined) return storedIn(this.#store, { workspaceId, id });
    return this.#store.get(actorSnapshots, workspaceId, kind, id);
  }

  /** Returns the snapshot from which an actor is restored. Throws when another version of the chart stored it. */
  resolve({ machineVersion, value, context }: ActorSnapshot): SnapshotFrom<Machine> {
    const { kind, machine, machineVersion: ours } = this.#definition;
    if (machineVersion !== ours) throw new Error(`A stored ${kind} has chart version ${machineVersion}.`);
    return machine.resolveState({ value, context });
  }

  /** Returns the state of an actor that is not in the memory of this process; undefined when there is none. */
  peek(id: ActorId): Peek<Machine> | undefined {
    const stored = this.get(id);
    if (stored === undefined) return undefined;
    const { createdAt, updatedAt, owner } = stored;
    const snapshot = this.resolve(stored);
    const { tags }: AnyMachineSnapshot = snapshot;
    const isLost = tags.has('resident') && !this.#isElsewhere(id, snapshot, owner);
    return { snapshot, live: false, isLost, createdAt, updatedAt };
  }

  /**
   * Returns whether another worker has the actor in memory. If this worker is the actor's home, no other worker has it in memory,
   * even if another worker stored it.
   */
  #isElsewhere(
    { workspaceId }: ActorId,
    snapshot: SnapshotFrom<Machine>,
    owner: string | undefined,
  ): boolean {
    if (owner === undefined || !this.#owners.livesElsewhere(owner)) return false;
    return !this.#owners.owns(workspaceId, homeIdOf(this.#definition, snapshot));
  }
}
