import type { AnyStateMachine } from 'xstate';
import type { Log } from '#src/core/log.ts';
import type { Store } from '#storage/store.ts';
import { type ActorDefinition, ActorKind } from './actor-kind.ts';
import type { InspectedActor } from './inspected-actor.ts';
import { LiveActors } from './live-actors.ts';

/**
 * The actor runtime: the kinds of actors that there are, and which actors are in memory. Everything that actors decide
 * in one turn of the event loop is stored in one commit. Starting it loads no actor.
 */
export class ActorRuntime {
  readonly #store: Store;
  readonly #log: Log;
  readonly #live: LiveActors;
  readonly #kinds = new Set<string>();

  constructor(store: Store, log: Log) {
    this.#store = store;
    this.#log = log;
    this.#live = new LiveActors(store);
  }

  /** Adds a kind of actor and returns the one handle by which its actors are spoken to. Throws for a kind it knows. */
  define<Machine extends AnyStateMachine>(definition: ActorDefinition<Machine>): ActorKind<Machine> {
    const { kind } = definition;
    if (this.#kinds.has(kind)) throw new Error(`The actor kind ${kind} is defined twice.`);
    this.#kinds.add(kind);
    return new ActorKind<Machine>(definition, this.#store, this.#live, this.#log);
  }

  /** Yields every actor in memory, for operators. */
  *inspect(): Generator<InspectedActor> {
    for (const actor of this.#live.all()) {
      yield {
        ...actor.address,
        machine: actor.machine.id,
        state: actor.snapshot().value,
        since: actor.updatedAt,
        revision: actor.revision,
        lastEvents: actor.recentEvents.list(),
      };
    }
  }

  /** Stops every actor without a transition: what they own is released, their stored snapshots stay. */
  stopAll(): void {
    this.#live.stopAll();
  }
}
