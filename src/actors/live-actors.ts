import type { AnyActorRef, AnyMachineSnapshot } from 'xstate';
import { type Address, addressText } from './address.ts';
import type { EventTrail } from './inspection.ts';

/** One actor in memory. */
export interface LiveActor {
  readonly address: Address;
  readonly kind: string;
  readonly machine: { readonly id: string; readonly version: number };
  readonly ref: AnyActorRef;
  readonly trail: EventTrail;
  readonly createdAt: string;
  updatedAt: string;
  /** Counts the transitions that were stored. */
  revision: number;
  /** The commit of its latest transition. */
  committed: Promise<void> | undefined;
}

/** Actors in memory whose state owns nothing; beyond this the least recently used go. */
const IDLE_LIMIT = 1_000;

/**
 * The actors in memory: those whose state owns something (the tag `resident`), which stay, and a bounded number of
 * others, which can be had again from what is stored of them.
 */
export class LiveActors {
  readonly #resident = new Map<string, LiveActor>();
  /** Least recently used first. */
  readonly #idle = new Map<string, LiveActor>();

  get(address: Address): LiveActor | undefined {
    const text = addressText(address);
    return this.#resident.get(text) ?? this.#idle.get(text);
  }

  /** Like `get`, and counts as use. */
  use(address: Address): LiveActor | undefined {
    const text = addressText(address);
    const resident = this.#resident.get(text);
    if (resident !== undefined) return resident;
    const idle = this.#idle.get(text);
    if (idle === undefined) return undefined;
    this.#idle.delete(text);
    this.#idle.set(text, idle);
    return idle;
  }

  /** Puts an actor where its state belongs: among the residents, among the idle, or (when it is over) nowhere. */
  place(actor: LiveActor): void {
    const snapshot: AnyMachineSnapshot = actor.ref.getSnapshot();
    this.forget(actor);
    if (snapshot.status !== 'active') return;
    (isResident(snapshot) ? this.#resident : this.#idle).set(addressText(actor.address), actor);
  }

  forget({ address }: LiveActor): void {
    const text = addressText(address);
    this.#resident.delete(text);
    this.#idle.delete(text);
  }

  /** Drops idle actors beyond the limit. All that moved must have been saved: what is dropped is what was stored. */
  trim(): void {
    for (const [text, actor] of this.#idle) {
      if (this.#idle.size <= IDLE_LIMIT) return;
      this.#idle.delete(text);
      actor.ref.stop();
    }
  }

  residents(): Iterable<LiveActor> {
    return this.#resident.values();
  }

  *all(): Generator<LiveActor> {
    yield* this.#resident.values();
    yield* this.#idle.values();
  }
}

export function isResident(snapshot: AnyMachineSnapshot): boolean {
  return snapshot.status === 'active' && snapshot.hasTag('resident');
}
