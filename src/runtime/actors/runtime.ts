import type { AnyStateMachine } from 'xstate';
import { invariant } from '#src/base/errors/invariant.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { Log } from '#src/base/log/log.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Actor, ActorCount, ActorDetail, ActorPage } from '#src/contract/wire/actor.ts';
import type { Store } from '#storage/store.ts';
import type { Home } from '../homes/slots.ts';
import type { ActorDefinition } from './actor-definition.ts';
import { ActorKind, type ActorMetrics } from './actor-kind.ts';
import { type ActorQuery, countActors, listActors } from './actor-list.ts';
import { type ActorOwners, ONE_OWNER } from './actor-owners.ts';
import { ActorWatch } from './actor-watch.ts';
import type { ActorId, Address } from './address.ts';
import type { ChartState } from './chart.ts';
import { type Inspectable, inspected } from './inspected-actor.ts';
import { LiveActors } from './live-actors.ts';

/** The inspection of one kind of actor. */
interface Kind {
  residentsOfAll(): readonly Address[];
  readonly inspector: {
    detail(id: ActorId): ActorDetail | undefined;
    passing(workspaceId: WorkspaceId): Iterable<Inspectable>;
  };
}

/**
 * `in-memory` leaves out the shared actors: they are in memory only during shared turns, and every worker reads them from the
 * store.
 */
type Listed = 'all' | 'in-memory';

/**
 * The actor runtime: it owns the kinds of actors, and knows which actors are in memory. Everything that actors decide in one turn
 * of the event loop is stored in one commit. The start of the runtime loads no actor.
 */
export class ActorRuntime {
  readonly #store: Store;
  readonly #log: Log;
  readonly #live: LiveActors;
  readonly #kinds = new Map<string, Kind>();
  /** Publishes events of actors for operators. */
  readonly watch = new ActorWatch();
  readonly #charts = new Map<string, () => ChartState>();
  readonly #metrics: ActorMetrics;

  constructor(
    store: Store,
    log: Log,
    metrics: ActorMetrics = new ServerMetrics(),
    owners: ActorOwners = ONE_OWNER,
  ) {
    this.#store = store;
    this.#metrics = metrics;
    this.#log = log;
    this.#live = new LiveActors(store, this.watch, owners);
  }

  /** Adds a kind of actor and returns its handle, the only way to address its actors. Throws for a kind that was added before. */
  define<Machine extends AnyStateMachine>(definition: ActorDefinition<Machine>): ActorKind<Machine> {
    const { kind } = definition;
    invariant(!this.#kinds.has(kind), 'A kind of actor is defined once.', kind);
    const actors = new ActorKind<Machine>(definition, this.#store, this.#live, this.#log, this.#metrics);
    this.#kinds.set(kind, actors);
    this.#charts.set(definition.machine.id, () => actors.chart);
    return actors;
  }

  /** Returns a page of a workspace's actors in memory. `ended` adds actors that have ended or failed lately. */
  list(
    workspaceId: WorkspaceId,
    { ended, ...query }: ActorQuery & { readonly ended: boolean },
    which: Listed = 'all',
  ): ActorPage {
    return listActors(this.#of(workspaceId, ended, which), query);
  }

  /** Yields every actor in memory, for operators. */
  *inspect(): Generator<Actor> {
    for (const actor of this.#live.all()) yield inspected(actor);
  }

  /** Returns how many actors of all workspaces are in memory, by kind and state. */
  counts(): readonly ActorCount[] {
    return countActors(this.#live.all());
  }

  /** Returns how many actors of a workspace are in memory, by kind and state. */
  countsOf(workspaceId: WorkspaceId, which: Listed = 'all'): readonly ActorCount[] {
    return countActors(this.#of(workspaceId, false, which));
  }

  /** Returns the operators' view of an actor, without restoring it; undefined when there is none. */
  detail(kind: string, id: ActorId): ActorDetail | undefined {
    return this.#kinds.get(kind)?.inspector.detail(id);
  }

  /** Returns the definition of a chart by its id; undefined when there is none. */
  chart(machine: string): ChartState | undefined {
    return this.#charts.get(machine)?.();
  }

  *#of(workspaceId: WorkspaceId, ended: boolean, which: Listed): Generator<Inspectable> {
    for (const actor of this.#live.all()) if (actor.address.workspaceId === workspaceId) yield actor;
    if (which === 'all') for (const kind of this.#kinds.values()) yield* kind.inspector.passing(workspaceId);
    if (!ended) return;
    for (const actor of this.#live.remembered.all()) {
      if (actor.address.workspaceId === workspaceId) yield actor;
    }
  }

  /**
   * Returns whether an actor of the workspace owns a live resource. In other workers, only actors of the counted kinds are known.
   * The result is exact in a shared turn.
   */
  isActive(workspaceId: string): boolean {
    if (this.#live.isActive(workspaceId)) return true;
    if (!this.#store.isShared) return false;
    const isThere = (address: Address) => address.workspaceId === workspaceId;
    return [...this.#kinds.values()].some((kind) => kind.residentsOfAll().some(isThere));
  }

  /** Yields the homes in which an actor owns a live resource. A home may be repeated. */
  activeHomes(): Iterable<Home> {
    return this.#live.activeHomes();
  }

  /** Removes actors from memory for which another worker now decides. None of these actors owns anything. */
  leaveTo(isElsewhere: (workspaceId: string, id?: string) => boolean): void {
    this.#live.leaveTo(isElsewhere);
  }

  /** Removes the actors of a deleted workspace from memory and never stores them again. */
  eraseWorkspace(workspaceId: string): void {
    this.#live.eraseWorkspace(workspaceId);
  }

  /** Stops every actor without a transition: their resources are released, their stored snapshots stay. */
  stopAll(): void {
    this.#live.stopAll();
  }
}
