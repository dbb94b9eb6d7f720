import type { AnyMachineSnapshot } from 'xstate';
import { timestamp } from '#src/base/time/clock.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Home } from '../homes/slots.ts';
import type { ActorOwners } from './actor-owners.ts';
import type { ActorWatch, LeftAs } from './actor-watch.ts';
import type { Address } from './address.ts';
import type { Inspectable } from './inspected-actor.ts';
import { RememberedActors } from './remembered-actors.ts';
import { ResidentActors } from './resident-actors.ts';
import { needsNoStoring, type StoredForm } from './stored-form.ts';

/** One actor in memory, of any kind. */
export interface LiveActor extends Inspectable {
  readonly address: Address;
  readonly machine: { readonly id: string; readonly version: number };
  readonly createdAt: string;
  updatedAt: string;
  /** The number of transitions that were stored. */
  revision: number;
  /** Whether the actor leaves memory at the end of the turn, because another worker may address it next. */
  readonly isPassing: boolean;
  /**
   * The notebook or conversation whose home the actor shares; undefined for a shared actor, and for an actor that shares the home
   * of its workspace.
   */
  readonly homeId: string | undefined;
  /** Whether other records contain everything that a snapshot would store. */
  readonly isStoredByOwner: boolean;
  /** The actor's last stored form; undefined until it is stored. */
  stored: StoredForm | undefined;
  /** Resolves when all writes of the actor's last move are committed; undefined once they are. */
  uncommitted: Promise<void> | undefined;
  /** Whether the actor is listed in the `ResidentActors`; undefined when its kind is not counted. */
  isNoted: boolean | undefined;
  /** The XState actor. Stopping it releases the resources of its state, without a transition. */
  readonly ref: { getSnapshot(): AnyMachineSnapshot; stop(): unknown };
  /** Makes the actor unknown to its kind. */
  forget(): void;
}

/** The most actors in memory whose states own nothing. If there are more, the least recently used actors leave. */
const MAX_IDLE_ACTORS = 1_000;

/**
 * The list of all actors in memory, of every kind. It also stores the actors that moved.
 *
 * An actor whose state has the tag `resident` owns a live resource and stays in memory. A bounded number of the other actors
 * stays; each can be restored from its stored snapshot. The commit of a turn stores all actors that moved in the turn.
 */
export class LiveActors {
  readonly #store: Store;
  readonly watch: ActorWatch;
  readonly owners: ActorOwners;
  readonly #resident = new Set<LiveActor>();
  /** Actors that own nothing, the least recently used first. */
  readonly #idle = new Set<LiveActor>();
  readonly #moved = new Set<LiveActor>();
  /** Actors that leave memory at the end of this turn. */
  readonly #passing = new Set<LiveActor>();
  readonly remembered = new RememberedActors();
  readonly residentActors: ResidentActors;

  constructor(store: Store, watch: ActorWatch, owners: ActorOwners) {
    this.#store = store;
    this.owners = owners;
    this.residentActors = new ResidentActors(store, owners);
    this.watch = watch;
    store.beforeCommit(() => {
      if (this.#moved.size > 0) this.saveMoved();
      if (this.#passing.size > 0) this.#dropPassing();
    });
  }

  /** Records a use of the actor. */
  touch(actor: LiveActor): void {
    if (this.#idle.delete(actor)) this.#idle.add(actor);
  }

  /**
   * Lists an actor by its state: as a resident, as idle, or, in a final state, not at all. After the turn, a shared actor is in
   * no list.
   */
  place(actor: LiveActor): void {
    if (actor.isPassing) {
      this.#passing.add(actor);
      return;
    }
    this.#resident.delete(actor);
    this.#idle.delete(actor);
    const snapshot = actor.ref.getSnapshot();
    if (snapshot.status !== 'active') {
      this.#remember(actor, 'ended');
      actor.forget();
    } else if (isResident(snapshot)) this.#resident.add(actor);
    else this.#idle.add(actor);
  }

  /** Removes an actor from memory without stopping it. */
  remove(actor: LiveActor): void {
    this.#resident.delete(actor);
    this.#idle.delete(actor);
    actor.forget();
  }

  /** Removes an actor that threw from memory, and remembers its history. */
  bury(actor: LiveActor): void {
    this.#remember(actor, 'failed');
    this.remove(actor);
    this.#store.write((tx) => this.#noteResidency(tx, actor, false));
  }

  /** Removes an actor from memory and never stores it again. */
  erase(actor: LiveActor): void {
    this.#tellLeft(actor, 'deleted');
    this.#moved.delete(actor);
    this.remove(actor);
    actor.ref.stop();
  }

  /** Removes all actors of a workspace from memory for ever. */
  eraseWorkspace(workspaceId: string): void {
    for (const actor of [...this.all(), ...this.#moved])
      if (actor.address.workspaceId === workspaceId) this.erase(actor);
  }

  /** Removes actors from memory for which another worker now decides. Their stored forms are current. */
  leaveTo(isElsewhere: (workspaceId: string, id?: string) => boolean): void {
    for (const actor of [...this.all()]) {
      if (!isElsewhere(actor.address.workspaceId, actor.homeId)) continue;
      this.#tellLeft(actor, 'stored');
      this.remove(actor);
      actor.ref.stop();
    }
    this.remembered.leaveTo(isElsewhere);
  }

  /** Yields the homes of the actors that own something or have moved in this turn. A home may be repeated. */
  *activeHomes(): Generator<Home> {
    for (const actors of [this.#resident, this.#moved])
      for (const { address, homeId, isPassing } of actors)
        if (!isPassing) yield { workspaceId: address.workspaceId, id: homeId };
  }

  /** Notes that the actor's state changed. This turn's commit stores it, unless its stored form is unchanged. */
  noteMove(actor: LiveActor, at = timestamp()): void {
    actor.updatedAt = at;
    const committed = this.committedWith(actor);
    if (actor.uncommitted === committed || committed === undefined) return;
    actor.uncommitted = committed;
    const settle = () => {
      if (actor.uncommitted === committed) actor.uncommitted = undefined;
    };
    committed.then(settle, () => undefined); // the store reports a failed commit once
  }

  /**
   * Returns a promise that resolves when the state of the actor, and the other decisions of its turn, are committed; undefined
   * when they already are. If necessary, this turn's commit stores the actor.
   */
  committedWith(actor: LiveActor): Promise<void> | undefined {
    if (!this.#moved.has(actor)) {
      // Other workers read the stored states of this worker's actors.
      if (!this.#store.isShared && needsNoStoring(actor.ref.getSnapshot(), actor.stored))
        return this.#store.durable();
      this.#moved.add(actor);
    }
    return this.#store.openTurn().durable; // the commit of this turn will save the actor
  }

  /** Writes the snapshots of all actors that moved, and drops the idle actors beyond the limit. */
  saveMoved(): void {
    const moved = [...this.#moved];
    this.#moved.clear();
    const written: LiveActor[] = [];
    for (const actor of moved) {
      const { value, context } = actor.ref.getSnapshot();
      actor.revision++;
      actor.stored = { value, context };
      if (!actor.isStoredByOwner || actor.isNoted !== undefined) written.push(actor);
    }
    if (written.length > 0)
      this.#store.write((tx) => {
        for (const actor of written) this.#save(tx, actor);
      });
    for (const actor of moved) this.place(actor);
    if (this.#idle.size > MAX_IDLE_ACTORS) this.#trim();
  }

  #save(tx: Transaction, actor: LiveActor): void {
    const snapshot = actor.ref.getSnapshot();
    this.#noteResidency(tx, actor, isResident(snapshot));
    if (actor.isStoredByOwner) return;
    const { machine, address, createdAt, updatedAt, revision } = actor;
    const { value, context } = snapshot;
    const owner = isResident(snapshot) ? this.owners.own : undefined;
    const record = {
      machine: machine.id,
      machineVersion: machine.version,
      revision,
      value,
      context,
      createdAt,
      updatedAt,
      ...(owner === undefined ? {} : { owner }),
    };
    tx.put(actorSnapshots, record, address.workspaceId, address.kind, address.id);
  }

  #noteResidency(tx: Transaction, actor: LiveActor, isNow: boolean): void {
    if (actor.isNoted === undefined || actor.isNoted === isNow) return;
    actor.isNoted = isNow;
    this.residentActors.note(tx, actor.address, isNow);
  }

  /** Returns the addresses of the actors of one kind that own something, including those that began to in this turn. */
  residents(kind: string): Address[] {
    return [...new Set([...this.#resident, ...this.#moved])]
      .filter((actor) => actor.address.kind === kind && isResident(actor.ref.getSnapshot()))
      .map((actor) => actor.address);
  }

  /** Returns whether an actor of the workspace owns a resource such as a kernel. Changes of this turn count. */
  isActive(workspaceId: string): boolean {
    for (const actors of [this.#resident, this.#moved])
      for (const actor of actors)
        if (actor.address.workspaceId === workspaceId && isResident(actor.ref.getSnapshot())) return true;
    return false;
  }

  *all(): Generator<LiveActor> {
    yield* this.#resident;
    yield* this.#idle;
  }

  /** Stops every actor without a transition. Stored snapshots stay as they are. */
  stopAll(): void {
    for (const actor of [...this.all()]) {
      actor.ref.stop();
      this.remove(actor);
    }
  }

  /** Keeps the operators' view of the actor, without the actor itself. */
  #remember(actor: LiveActor, presence: 'ended' | 'failed'): void {
    this.#tellLeft(actor, presence);
    const { address, homeId, machine, state, updatedAt, revision, trail } = actor;
    const context = actor.shown();
    const shown = () => context;
    const remembered = { address, homeId, machine, presence, state, updatedAt, revision, trail, shown };
    this.remembered.add(address, remembered);
  }

  /** Removes the passing actors. Called when all moves are stored. */
  #dropPassing(): void {
    for (const actor of this.#passing) {
      actor.forget();
      actor.ref.stop();
    }
    this.#passing.clear();
  }

  /** Removes idle actors beyond the limit. Called when all moves are stored, so a removed actor equals its stored form. */
  #trim(): void {
    for (const actor of this.#idle) {
      if (this.#idle.size <= MAX_IDLE_ACTORS) return;
      this.#tellLeft(actor, 'stored');
      this.remove(actor);
      actor.ref.stop();
    }
  }

  #tellLeft(actor: LiveActor, presence: LeftAs): void {
    if (this.watch.isWatched) this.watch.tell({ type: 'left', actor, presence });
  }
}

function isResident(snapshot: AnyMachineSnapshot): boolean {
  return snapshot.status === 'active' && snapshot.hasTag('resident');
}
