import type { Actor, ActorLink, Presence } from '#src/wire/actor.ts';
import type { Address } from './address.ts';
import { statePath } from './state-path.ts';
import type { Trail } from './trail.ts';

/** What operators may see of an actor's context: never code, prompts or credentials. Each kind lists its own members. */
export interface ShownContext {
  readonly links: readonly ActorLink[];
  readonly context: Readonly<Record<string, unknown>>;
}

/** What is inspected: an actor in memory, or what is remembered of one. */
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
