import type { Actor, ActorLink, Presence } from '#src/contract/wire/actor.ts';
import type { Address } from './address.ts';
import { statePath } from './state-path.ts';
import type { Trail } from './trail.ts';

/**
 * The part of an actor's context that operators may see: never code, prompts or credentials. Each kind lists its own
 * members.
 */
export interface ShownContext {
  readonly links: readonly ActorLink[];
  readonly context: Readonly<Record<string, unknown>>;
}

/** The source of an inspection: an actor in memory, or the remembered history of an ended actor. */
export interface Inspectable {
  readonly address: Address;
  readonly machine: { readonly id: string };
  readonly presence: Presence;
  readonly state: unknown;
  readonly updatedAt: string;
  readonly revision: number;
  readonly trail: Trail;
  shown(): ShownContext;
}

const MAX_LAST_EVENTS = 16;

export function inspected(actor: Inspectable): Actor {
  const { kind, id } = actor.address;
  return {
    kind,
    id,
    machine: actor.machine.id,
    presence: actor.presence,
    state: actor.state,
    path: statePath(actor.state),
    since: actor.updatedAt,
    revision: actor.revision,
    links: actor.shown().links,
    lastEvents: actor.trail
      .list()
      .filter(({ refused }) => refused === undefined)
      .slice(-MAX_LAST_EVENTS)
      .map(({ type, at }) => ({ type, at })),
  };
}
