/** The operators' view of the actors of one kind. This view restores no actor. */
import type { AnyMachineSnapshot, AnyStateMachine, ContextFrom } from 'xstate';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorDetail } from '#src/contract/wire/actor.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import type { ActorSnapshot } from '#storage/records/actor-snapshots.ts';
import type { ActorDefinition, Peek } from './actor-definition.ts';
import type { ActorId } from './address.ts';
import { answersOf } from './chart.ts';
import { type Inspectable, inspected } from './inspected-actor.ts';
import { shownContext } from './own-actor.ts';
import { Trail } from './trail.ts';

/** The most listed actors: the limit of `LiveActors` for actors in memory that own nothing. */
const MAX_LISTED = 1_000;

/** The sources of an inspector. */
export interface Inspected<Machine extends AnyStateMachine> {
  readonly definition: ActorDefinition<Machine>;
  /** Whether these actors are in memory during shared turns only: see `ActorDefinition.isShared`. */
  readonly isPassing: boolean;
  peek(id: ActorId): Peek<Machine> | undefined;
  stored(id: ActorId): ActorSnapshot | undefined;
  inMemory(id: ActorId): Inspectable | undefined;
  /** Returns the memory of an actor that has left memory. */
  remembered(id: ActorId): Inspectable | undefined;
}

export class ActorInspector<Machine extends AnyStateMachine> {
  readonly #actors: Inspected<Machine>;

  constructor(actors: Inspected<Machine>) {
    this.#actors = actors;
  }

  /**
   * Yields the actors of a workspace that are in memory only during shared turns, from the store. Leaves out actors whose record
   * is damaged.
   */
  *passing(workspaceId: WorkspaceId): Generator<Inspectable> {
    const { definition, isPassing } = this.#actors;
    const { openIn, machine, kind } = definition;
    if (!isPassing || openIn === undefined) return;
    for (const id of openIn(workspaceId, MAX_LISTED)) {
      const stored = unlessDamaged(() => this.#actors.stored({ workspaceId, id }));
      if (stored === undefined || this.#actors.inMemory({ workspaceId, id }) !== undefined) continue;
      const { value, context, updatedAt, revision } = stored;
      const address = { workspaceId, kind, id };
      const shown = () => shownContext(definition, context as ContextFrom<Machine>);
      const trail = new Trail();
      yield { address, machine, presence: 'stored', state: value, updatedAt, revision, trail, shown };
    }
  }

  /** Returns the operators' view of an actor; undefined when there is none. */
  detail(id: ActorId): ActorDetail | undefined {
    const { definition } = this.#actors;
    const { machine, kind } = definition;
    const peek = this.#actors.peek(id);
    if (peek === undefined) return undefined;
    const known = this.#actors.inMemory(id) ?? this.#actors.remembered(id);
    const { status, value, context }: AnyMachineSnapshot = peek.snapshot;
    const shown = shownContext(definition, context);
    const { lastEvents: _, ...actor } = inspected({
      address: { workspaceId: id.workspaceId, kind, id: id.id },
      machine,
      presence: known?.presence ?? (status === 'active' ? 'stored' : 'ended'),
      state: value,
      updatedAt: peek.updatedAt,
      revision: known?.revision ?? this.#actors.stored(id)?.revision ?? 0,
      trail: known?.trail ?? new Trail(),
      shown: () => shown,
    });
    return {
      ...actor,
      createdAt: peek.createdAt,
      context: shown.context,
      trail: known?.trail.list() ?? [],
      ...answersOf(machine, value),
    };
  }
}
