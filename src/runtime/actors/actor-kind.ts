/**
 * The actors of one kind, addressed by id. Every event, result and notice has the type of the kind's chart.
 *
 * `ask` and `tell` are synchronous: they decide in the turn in which they are called. An actor is restored from its stored
 * snapshot when it is first addressed. An actor that throws is a bug. The error is logged, the resources of the actor are
 * released, and the next use restores the actor from its last stored state. Only the caller of the command gets the error.
 *
 * An actor comes into memory only in the worker that is its home. In any other worker, a call that would bring the actor into
 * memory throws, because two workers would decide for one actor. A server that only reads brings no actor into memory: `peek`
 * shows the stored states, commands throw `read_only`, and `tell` takes no facts.
 *
 * The work of actors is in the ports of their charts, and the rights to address actors are in auth.
 */

import type {
  ActorOptions,
  AnyActorRef,
  AnyMachineSnapshot,
  AnyStateMachine,
  EmittedFrom,
  EventFromLogic,
  InputFrom,
  SnapshotFrom,
} from 'xstate';
import { AppError, notFound, readOnly } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Log } from '#src/base/log/log.ts';
import type { Counter } from '#src/base/metrics/instruments.ts';
import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { type ActorSnapshot, actorSnapshots } from '#storage/records/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { ActorDefinition, Peek } from './actor-definition.ts';
import { ActorInspector } from './actor-inspector.ts';
import { type ActorId, type Address, addressText } from './address.ts';
import { type ChartState, chartOf } from './chart.ts';
import { InitialStates } from './initial-state.ts';
import type { LiveActors } from './live-actors.ts';
import { NoticeBus, type NoticeListener } from './notice-bus.ts';
import { type OwnActor, ownActor } from './own-actor.ts';
import { refusal } from './refusal.ts';
import { StoredActors } from './stored-actors.ts';
import type { StoredForm } from './stored-form.ts';
import { Trail } from './trail.ts';

/** The metrics of actors. */
export type ActorMetrics = Pick<ServerMetrics, 'transitions' | 'refusals'>;

export class ActorKind<Machine extends AnyStateMachine> {
  readonly #definition: ActorDefinition<Machine>;
  readonly #store: Store;
  readonly #log: Log;
  readonly #live: LiveActors;
  readonly #stored: StoredActors<Machine>;
  readonly #notices: NoticeBus<EmittedFrom<Machine>>;
  readonly #inMemory = new Map<string, OwnActor<Machine>>();
  readonly #metrics: ActorMetrics;
  readonly #transitions: Counter;
  /** See `LiveActor.isPassing`. */
  readonly #isPassing: boolean;
  readonly #initialStates: InitialStates<Machine>;
  /**
   * The event of the last transition of each actor. An actor's notices are heard between its transition and its subscriber, and may
   * make another actor move.
   */
  readonly #lastEvents = new WeakMap<AnyActorRef, string>();
  readonly inspector: ActorInspector<Machine>;
  /** The name of this process in stored actors; undefined in a server of one process. */
  readonly owner: string | undefined;

  constructor(
    definition: ActorDefinition<Machine>,
    store: Store,
    live: LiveActors,
    log: Log,
    metrics: ActorMetrics,
  ) {
    this.#metrics = metrics;
    this.#transitions = metrics.transitions.of(definition.kind);
    this.#definition = { ...definition, machine: this.#noting(definition.machine) };
    this.#store = store;
    this.#isPassing = definition.isShared === true;
    this.#initialStates = new InitialStates(definition.machine);
    this.#live = live;
    this.owner = live.owners.own;
    this.#stored = new StoredActors(definition, store, live.owners);
    this.#log = log;
    this.#notices = new NoticeBus(log);
    this.inspector = new ActorInspector({
      definition,
      isPassing: this.#isPassing,
      peek: (id) => this.peek(id),
      stored: (id) => this.#stored.get(id),
      inMemory: (id) => this.#inMemory.get(keyOf(id)),
      remembered: (id) => live.remembered.get(this.#address(id)),
    });
  }

  /** Whether the server only reads, so that no actor comes into memory. */
  get isReadOnly(): boolean {
    return this.#store.isReadOnly;
  }

  /** Calls `listener` in the turn in which an actor emits a notice. `committed` resolves when the notice may be passed on to others. */
  on(listener: NoticeListener<EmittedFrom<Machine>>): void {
    this.#notices.listen(listener);
  }

  /** Calls `watcher` with every notice of one actor, once the notice is committed. Returns a function that removes the watcher. */
  watch(id: ActorId, watcher: (notice: EmittedFrom<Machine>) => void): () => void {
    return this.#notices.watch(this.#address(id), watcher);
  }

  /** Creates an actor, which this turn's commit stores. Throws when an actor with this id exists. */
  spawn(id: ActorId, input: InputFrom<Machine>): SnapshotFrom<Machine> {
    if (this.#store.isReadOnly) throw readOnly();
    const address = this.#address(id);
    if (this.#isPassing) this.#requireSharedTurn();
    if (this.#definition.hasNewIds !== true) {
      const isFree = !this.#inMemory.has(keyOf(id)) && this.#stored.get(id) === undefined;
      invariant(isFree, 'An address has one actor.', addressText(address));
    }
    const now = timestamp();
    const begun = this.#isPassing ? this.#begin(address, input, now) : undefined;
    if (begun !== undefined) return begun;
    const times = { createdAt: now, updatedAt: now, revision: 0 };
    const actor = this.#start(address, { input }, times, undefined);
    this.#live.noteMove(actor, now);
    return actor.ref.getSnapshot();
  }

  /** Stores a new actor without bringing it into memory, and returns its state. Returns undefined when the actor must be in memory. */
  #begin(address: Address, input: InputFrom<Machine>, now: string): SnapshotFrom<Machine> | undefined {
    const { machine, machineVersion, storedIn } = this.#definition;
    // A watcher needs the actor in memory, to show its history.
    if (storedIn !== undefined || this.#live.watch.isWatched) return undefined;
    const begun = this.#initialStates.of(input);
    if (begun === undefined) return undefined;
    const { value, context }: AnyMachineSnapshot = begun;
    const times = { createdAt: now, updatedAt: now, revision: 1 };
    const record = { machine: machine.id, machineVersion, value, context, ...times };
    this.#store.write((tx) => tx.put(actorSnapshots, record, address.workspaceId, address.kind, address.id));
    return begun;
  }

  /** Sends a command and returns the new state. Throws `not_found`, or the refusal when the state does not take the command. */
  ask(id: ActorId, event: EventFromLogic<Machine>): SnapshotFrom<Machine> {
    const actor = this.#accepting(id, event);
    actor.ref.send(event);
    const { status, error } = actor.ref.getSnapshot();
    if (status === 'error') throw error;
    return actor.ref.getSnapshot();
  }

  /** Throws the error that `ask` would throw, without any change. */
  check(id: ActorId, event: EventFromLogic<Machine>): void {
    this.#accepting(id, event);
  }

  /** Throws the refusal of the stored state. Unlike `check`, this method restores no actor, and does not throw for an unknown id. */
  checkStored(id: ActorId, event: EventFromLogic<Machine>): void {
    const snapshot: AnyMachineSnapshot | undefined = this.peek(id)?.snapshot;
    if (snapshot !== undefined && !snapshot.can(event)) {
      throw this.#refusal(snapshot, this.#address(id), event.type);
    }
  }

  /** Reports a fact. Returns false when the actor is gone, or its state does not take the event. */
  tell(id: ActorId, event: EventFromLogic<Machine>): boolean {
    const actor = this.#find(id);
    if (actor === undefined) return false;
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    // Without this check, an event that the state does not take would count as a move and be stored.
    if (!snapshot.can(event)) return false;
    actor.ref.send(event);
    return true;
  }

  /** Returns the state of an actor without restoring it; undefined when there is none. */
  peek(id: ActorId): Peek<Machine> | undefined {
    const actor = this.#inMemory.get(keyOf(id));
    if (actor !== undefined) {
      const { createdAt, updatedAt } = actor;
      if (actor.uncommitted !== undefined) this.#store.noteReadOfAll();
      return { snapshot: actor.ref.getSnapshot(), live: true, isLost: false, createdAt, updatedAt };
    }
    return this.#stored.peek(id);
  }

  /** Brings an actor into memory without a command. Returns its `peek`. */
  restore(id: ActorId): Peek<Machine> | undefined {
    return this.#find(id) === undefined ? undefined : this.peek(id);
  }

  /** Removes an actor that owns nothing from memory, and from the store with the transaction. */
  erase(tx: Transaction, id: ActorId): void {
    const actor = this.#inMemory.get(keyOf(id));
    if (actor !== undefined) this.#live.erase(actor);
    this.#live.remembered.forget(this.#address(id));
    tx.remove(actorSnapshots, id.workspaceId, this.#definition.kind, id.id);
  }

  /** Returns the addresses of the actors that own something, including actors that began to do so in this turn. */
  residents(): Address[] {
    return this.#live.residents(this.#definition.kind);
  }

  /** Returns the `residents` of all workers. In a shared turn the result is exact. */
  residentsOfAll(): Address[] {
    const { kind } = this.#definition;
    return [...this.#live.residents(kind), ...this.#live.residentActors.elsewhere(kind)];
  }

  /** Returns the definition of the chart as JSON. */
  get chart(): ChartState {
    return chartOf(this.#definition.machine);
  }

  #address({ workspaceId, id }: ActorId): Address {
    return { workspaceId, kind: this.#definition.kind, id };
  }

  #accepting(id: ActorId, event: EventFromLogic<Machine>): OwnActor<Machine> {
    if (this.#store.isReadOnly) throw readOnly();
    const actor = this.#find(id);
    if (actor === undefined) throw notFound();
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    if (!snapshot.can(event)) throw this.#refusal(snapshot, actor.address, event.type);
    return actor;
  }

  /** Returns the refusal of a command, which the trail of the actor notes. */
  #refusal(snapshot: AnyMachineSnapshot, address: Address, event: string): Error {
    const { refused = () => undefined } = this.#definition;
    const error = refusal(snapshot, address, event, (code) => refused(code, snapshot.context, event));
    if (!(error instanceof AppError)) return error;
    const { code } = error;
    this.#metrics.refusals.of(address.kind, code).add();
    this.#trailOf(address)?.refuse(event, code);
    const { watch } = this.#live;
    if (watch.isWatched) {
      watch.tell({ type: 'refused', actor: { address, state: snapshot.value }, event, code });
    }
    return error;
  }

  #trailOf(address: Address): Trail | undefined {
    return (this.#inMemory.get(keyOf(address)) ?? this.#live.remembered.get(address))?.trail;
  }

  #find(id: ActorId): OwnActor<Machine> | undefined {
    if (this.#store.isReadOnly) return undefined;
    if (this.#isPassing) this.#requireSharedTurn();
    const known = this.#inMemory.get(keyOf(id));
    if (known !== undefined) {
      this.#live.touch(known);
      return known;
    }
    const stored = this.#stored.get(id);
    return stored === undefined ? undefined : this.#revive(this.#address(id), stored);
  }

  #requireSharedTurn(): void {
    const { kind } = this.#definition;
    invariant(this.#store.mayDecide, 'An actor of a shared kind is addressed only in a shared turn.', kind);
  }

  #revive(address: Address, stored: ActorSnapshot): OwnActor<Machine> {
    const actor = this.#start(address, { snapshot: this.#stored.resolve(stored) }, stored, stored);
    const { restored } = this.#definition;
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    if (restored !== undefined && snapshot.can(restored)) actor.ref.send(restored);
    return actor;
  }

  #start(
    address: Address,
    from: Pick<ActorOptions<Machine>, 'input' | 'snapshot'>,
    times: Pick<ActorSnapshot, 'createdAt' | 'updatedAt' | 'revision'>,
    stored: StoredForm | undefined,
  ): OwnActor<Machine> {
    const isNew = stored === undefined && this.#definition.hasNewIds === true;
    const trail = (isNew ? undefined : this.#live.remembered.take(address)?.trail) ?? new Trail();
    const key = keyOf(address);
    const beginnings = { address, from, times, stored, trail, isPassing: this.#isPassing };
    const actor = ownActor(this.#definition, beginnings, (ended) => {
      if (this.#inMemory.get(key) === ended) this.#inMemory.delete(key);
    });
    const { ref, homeId } = actor;
    const isAtHome = this.#isPassing || this.#live.owners.owns(address.workspaceId, homeId);
    invariant(isAtHome, 'An actor comes into memory only in the worker that is its home.', address.id);
    ref.on('*', (notice: EmittedFrom<Machine>) =>
      this.#notices.publish(address, notice, this.#live.committedWith(actor)),
    );
    let hasBegun = false;
    ref.subscribe({
      next: ({ value }: AnyMachineSnapshot) => {
        if (hasBegun) this.#moved(actor, value);
        else trail.begin(value); // `start` announces the initial state, which is not a transition
        hasBegun = true;
      },
      error: (error: unknown) => this.#bury(actor, error),
    });
    this.#inMemory.set(key, actor);
    this.#live.place(actor);
    ref.start();
    const { status, error } = ref.getSnapshot();
    if (status === 'error') throw error;
    const { watch } = this.#live;
    if (watch.isWatched && status === 'active') watch.tell({ type: 'moved', actor, from: undefined });
    return actor;
  }

  /** Notes that the actor has taken the event of the last transition, and is in the state `value` now. */
  #moved(actor: OwnActor<Machine>, value: unknown): void {
    this.#transitions.add();
    this.#live.noteMove(actor);
    const event = this.#lastEvents.get(actor.ref) ?? '';
    const from = actor.trail.move(event, value);
    const { watch } = this.#live;
    if (watch.isWatched) watch.tell({ type: 'moved', actor, event, from });
  }

  /**
   * Returns the chart in a form that notes the event of each transition, because subscribers of an actor get only its state. With the
   * option `inspect`, XState would call us for each step and action, too, and for each event of a child.
   */
  #noting<Chart extends Machine>(machine: Chart): Chart {
    const transition: AnyStateMachine['transition'] = (snapshot, event, scope) => {
      const after = machine.transition(snapshot, event, scope);
      this.#lastEvents.set(scope.self, event.type);
      return after;
    };
    return Object.create(machine, { transition: { value: transition } });
  }

  #bury(actor: OwnActor<Machine>, error: unknown): void {
    this.#log.error({ err: error, actor: addressText(actor.address) }, 'an actor failed');
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    const children: Readonly<Record<string, AnyActorRef>> = snapshot.children ?? {};
    // XState does not stop the children of an actor that throws; this event stops them.
    for (const child of Object.values(children)) child.send({ type: 'xstate.stop' });
    this.#live.saveMoved();
    this.#live.bury(actor);
  }
}

function keyOf({ workspaceId, id }: ActorId): string {
  return `${workspaceId}/${id}`;
}
