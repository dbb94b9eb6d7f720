/**
 * The actor runtime: from an address to a live actor.
 *
 * `ask` and `tell` are synchronous: they decide in the turn they are called in, and everything decided in one turn is
 * stored in one commit (`Store`). Actors are restored from their snapshot when first addressed; start-up loads none.
 * An actor whose state has the tag `resident` owns something that lives (a kernel, a run in flight) and stays in
 * memory; the others are kept only while they are among the most recently used.
 *
 * An actor that throws is a bug: it is logged, what it owned is released, and its last good state is stored, from which
 * it is restored when it is next addressed. Nobody else notices, but the one whose command it was.
 *
 * Not here: what actors do (machines' ports, given by the app), and who may address them (auth).
 */
import { type AnyActorRef, type AnyMachineSnapshot, type AnyStateMachine, createActor } from 'xstate';
import { timestamp } from '#src/core/clock.ts';
import { notFound } from '#src/core/errors.ts';
import type { Log } from '#src/core/log.ts';
import { type ActorSnapshot, actorSnapshots } from '#storage/actor-snapshots.ts';
import type { Store } from '#storage/store.ts';
import { type Address, addressText } from './address.ts';
import { EventTrail, type Inspected } from './inspection.ts';
import { isResident, type LiveActor, LiveActors } from './live-actors.ts';
import { type ActorEvent, NoticeBoard, type NoticeListener } from './notice-board.ts';
import { refusal } from './refusal.ts';

/** One kind of actor: its chart with every port provided, and the version its snapshots are stored with. */
export interface ActorDefinition {
  readonly kind: string;
  readonly machine: AnyStateMachine;
  readonly machineVersion: number;
}

/** What can be known of an actor without bringing it to life. */
export interface Peek {
  readonly snapshot: AnyMachineSnapshot;
  /** Whether it is in memory. A resident state that is not live was left behind by a server that died. */
  readonly live: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export class ActorRuntime {
  readonly #store: Store;
  readonly #log: Log;
  readonly #definitions = new Map<string, ActorDefinition>();
  readonly #notices: NoticeBoard;
  readonly #actors = new LiveActors();
  readonly #moved = new Set<LiveActor>();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
    this.#notices = new NoticeBoard(log);
    store.beforeCommit(() => this.#saveMoved());
  }

  define(definition: ActorDefinition): void {
    this.#definitions.set(definition.kind, definition);
  }

  /** Called in the turn in which an actor of `kind` emits; `committed` resolves when the world may hear of it. */
  onNotice(kind: string, listener: NoticeListener): void {
    this.#notices.listen(kind, listener);
  }

  /** Calls `listener` with every notice of one actor, once it is committed, until the returned function is called. */
  watch(address: Address, listener: (notice: ActorEvent) => void): () => void {
    return this.#notices.watch(address, listener);
  }

  /** Makes a new actor; throws when there is one. Its first snapshot is in this turn's commit. */
  spawn(address: Address, input: unknown): AnyMachineSnapshot {
    if (this.peek(address) !== undefined)
      throw new Error(`There is an actor at ${addressText(address)} already.`);
    const now = timestamp();
    const actor = this.#adopt(address, { input }, { createdAt: now, updatedAt: now, revision: 0 });
    this.#note(actor, now);
    return actor.ref.getSnapshot();
  }

  /** Sends a command; throws the state's refusal when it does not take it, and 404 when there is no such actor. */
  ask(address: Address, event: ActorEvent): AnyMachineSnapshot {
    this.check(address, event);
    const snapshot = this.#send(this.#find(address)!, event);
    if (snapshot.status === 'error') throw snapshot.error;
    return snapshot;
  }

  /** Throws what `ask` would throw, and changes nothing. */
  check(address: Address, event: ActorEvent): void {
    const actor = this.#find(address);
    if (actor === undefined) throw notFound();
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    if (!snapshot.can(event)) throw refusal(snapshot, address, event.type);
  }

  /** Reports a fact, and answers whether it was of use: an actor that is gone, or in another state, ignores it. */
  tell(address: Address, event: ActorEvent): boolean {
    const actor = this.#find(address);
    // An event that is not taken would still count as a move and be stored.
    if (actor === undefined || !actor.ref.getSnapshot().can(event)) return false;
    this.#send(actor, event);
    return true;
  }

  /** Looks without restoring. */
  peek(address: Address): Peek | undefined {
    const actor = this.#actors.get(address);
    if (actor !== undefined) {
      const { createdAt, updatedAt } = actor;
      this.#store.noteRead(
        this.#moved.has(actor),
        actorSnapshots,
        address.workspaceId,
        address.kind,
        address.id,
      );
      return { snapshot: actor.ref.getSnapshot(), live: true, createdAt, updatedAt };
    }
    const stored = this.#stored(address);
    if (stored === undefined) return undefined;
    const { createdAt, updatedAt } = stored;
    return {
      snapshot: this.#resolve(this.#definition(address.kind), stored),
      live: false,
      createdAt,
      updatedAt,
    };
  }

  /** Resolves when the state that `peek` shows is on disk; `undefined` when it is. */
  uncommitted(address: Address): Promise<void> | undefined {
    const durable = this.#store.durable();
    if (durable === undefined) return undefined;
    const actor = this.#actors.get(address);
    // One that has left memory may have done so in the commit that is under way.
    return actor === undefined ? durable : actor.committed;
  }

  /** Brings an actor back without asking anything of it. */
  restore(address: Address): Peek | undefined {
    return this.#find(address) === undefined ? undefined : this.peek(address);
  }

  /** Every actor in memory, for operators. */
  *inspect(): Generator<Inspected> {
    for (const actor of this.#actors.all()) {
      yield {
        ...actor.address,
        machine: actor.machine.id,
        state: actor.ref.getSnapshot().value,
        since: actor.updatedAt,
        revision: actor.revision,
        lastEvents: actor.trail.list(),
      };
    }
  }

  /** Addresses of the live actors of one kind that own something, also since this very turn. */
  residents(kind: string): Address[] {
    return [...new Set([...this.#actors.residents(), ...this.#moved])]
      .filter(({ address, ref }) => address.kind === kind && isResident(ref.getSnapshot()))
      .map((actor) => actor.address);
  }

  /** Stops every actor without a transition: what they own is released, their snapshots stay. */
  stopAll(): void {
    for (const actor of [...this.#actors.all()]) {
      actor.ref.stop();
      this.#actors.forget(actor);
    }
  }

  #find(address: Address): LiveActor | undefined {
    const known = this.#actors.use(address);
    if (known !== undefined) return known;
    const stored = this.#stored(address);
    return stored === undefined ? undefined : this.#revive(address, stored);
  }

  #stored({ workspaceId, kind, id }: Address): ActorSnapshot | undefined {
    return this.#store.get(actorSnapshots, workspaceId, kind, id);
  }

  #resolve(definition: ActorDefinition, stored: ActorSnapshot): AnyMachineSnapshot {
    if (stored.machineVersion !== definition.machineVersion) {
      throw new Error(`A stored ${definition.kind} has chart version ${stored.machineVersion}.`);
    }
    return definition.machine.resolveState({ value: stored.value as never, context: stored.context });
  }

  #revive(address: Address, stored: ActorSnapshot): LiveActor {
    const snapshot = this.#resolve(this.#definition(address.kind), stored);
    const actor = this.#adopt(address, { snapshot, input: undefined }, stored);
    if (snapshot.can({ type: 'restored' })) this.#send(actor, { type: 'restored' });
    return actor;
  }

  #adopt(
    address: Address,
    from: { readonly input: unknown; readonly snapshot?: AnyMachineSnapshot },
    { createdAt, updatedAt, revision }: Pick<ActorSnapshot, 'createdAt' | 'updatedAt' | 'revision'>,
  ): LiveActor {
    const { kind, machine, machineVersion } = this.#definition(address.kind);
    const trail = new EventTrail();
    const ref: AnyActorRef = createActor(machine, {
      ...from,
      // The only place that hears of what children and timers send, too.
      inspect: (inspected) => {
        if (inspected.type !== '@xstate.event' || inspected.actorRef !== ref) return;
        if (inspected.event.type !== 'xstate.init') trail.add(inspected.event.type);
      },
    });
    const actor: LiveActor = {
      address,
      kind,
      machine: { id: machine.id, version: machineVersion },
      ref,
      trail,
      createdAt,
      updatedAt,
      revision,
      committed: undefined,
    };
    ref.on('*', (notice: ActorEvent) =>
      this.#notices.publish(address, notice, this.#store.openTurn().durable),
    );
    const onError = (error: unknown) => this.#bury(actor, error);
    const starting = ref.subscribe({ error: onError });
    this.#actors.place(actor);
    ref.start();
    starting.unsubscribe();
    const { status, error } = ref.getSnapshot() as AnyMachineSnapshot;
    if (status === 'error') throw error;
    // Behind `start`, which announces the state an actor begins in: being restored is not a transition.
    ref.subscribe({ next: () => this.#note(actor), error: onError });
    return actor;
  }

  #bury(actor: LiveActor, error: unknown): void {
    this.#log.error({ err: error, actor: addressText(actor.address) }, 'an actor failed');
    const { children } = actor.ref.getSnapshot() as { children?: Readonly<Record<string, AnyActorRef>> };
    // XState leaves the children of an actor that throws running; this is the event by which it stops them itself.
    for (const child of Object.values(children ?? {})) child.send({ type: 'xstate.stop' });
    this.#saveMoved();
    this.#actors.forget(actor);
  }

  #send(actor: LiveActor, event: ActorEvent): AnyMachineSnapshot {
    actor.ref.send(event);
    return actor.ref.getSnapshot();
  }

  #note(actor: LiveActor, at = timestamp()): void {
    actor.updatedAt = at;
    this.#moved.add(actor);
    actor.committed = this.#store.openTurn().durable;
  }

  #saveMoved(): void {
    if (this.#moved.size === 0) return;
    const moved = [...this.#moved];
    this.#moved.clear();
    this.#store.write((tx) => {
      for (const actor of moved) {
        const { value, context } = actor.ref.getSnapshot() as AnyMachineSnapshot;
        const { workspaceId, kind, id } = actor.address;
        tx.put(
          actorSnapshots,
          {
            machine: actor.machine.id,
            machineVersion: actor.machine.version,
            revision: ++actor.revision,
            value,
            context,
            createdAt: actor.createdAt,
            updatedAt: actor.updatedAt,
          },
          workspaceId,
          kind,
          id,
        );
        this.#actors.place(actor);
      }
    });
    this.#actors.trim();
  }

  #definition(kind: string): ActorDefinition {
    const definition = this.#definitions.get(kind);
    if (definition === undefined) throw new Error(`There is no actor kind ${kind}.`);
    return definition;
  }
}
