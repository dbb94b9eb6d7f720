import type { Address } from './address.ts';
import type { Answers } from './chart.ts';
import { statePath } from './state-path.ts';
import type { Trail, TrailEntry } from './trail.ts';

/** Another actor that one has to do with. */
export interface ActorLink {
  readonly kind: string;
  readonly id: string;
}

/** What operators may see of an actor's context: never code, prompts or credentials. Each kind lists its own members. */
export interface ShownContext {
  readonly links: readonly ActorLink[];
  readonly context: Readonly<Record<string, unknown>>;
}

/** Where an actor is: in memory, only in the store, in its final state, or out of memory because it threw. */
export type Presence = 'live' | 'stored' | 'ended' | 'failed';

/** What an operator sees of an actor in a list. Events are shown by type: their members hold code and prompts. */
export interface InspectedActor {
  readonly workspaceId: string;
  readonly kind: string;
  readonly id: string;
  readonly machine: string;
  readonly presence: Presence;
  readonly state: unknown;
  /** The state as a path. */
  readonly path: string;
  /** When its state last changed. */
  readonly since: string;
  readonly revision: number;
  readonly links: readonly ActorLink[];
  readonly lastEvents: readonly { readonly type: string; readonly at: string }[];
}

/** What an operator sees of one actor. */
export interface ActorDetail extends Omit<InspectedActor, 'lastEvents'>, Answers {
  readonly createdAt: string;
  readonly context: Readonly<Record<string, unknown>>;
  readonly trail: readonly TrailEntry[];
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

export function inspected(actor: Inspectable): InspectedActor {
  const { workspaceId, kind, id } = actor.address;
  return {
    workspaceId,
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
