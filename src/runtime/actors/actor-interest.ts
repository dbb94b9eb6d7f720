/** The followed actors, and the kinds of events to send about them. */
import type { Address } from './address.ts';

export interface ChosenActors {
  /** Selects actors of this kind; absent: actors of every kind. */
  readonly kind?: string | undefined;
  /** Selects the one actor of this kind with this id. */
  readonly id?: string | undefined;
  /** Whether to send the transitions of each actor; otherwise counts by state and refusals are sent. */
  readonly moves: boolean;
}

/** A selection of actors in one workspace. */
export interface ActorInterest {
  readonly workspaceId: string;
  readonly choice: ChosenActors;
}

/** Returns whether the actor is followed. */
export function concerns({ workspaceId, choice }: ActorInterest, address: Address): boolean {
  return (
    address.workspaceId === workspaceId &&
    (choice.kind === undefined || choice.kind === address.kind) &&
    (choice.id === undefined || choice.id === address.id)
  );
}

/** Returns whether two selections are the same. */
export function isSameChoice(one: ChosenActors, other: ChosenActors): boolean {
  return one.kind === other.kind && one.id === other.id && one.moves === other.moves;
}
