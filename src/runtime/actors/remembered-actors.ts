import { type Address, addressText } from './address.ts';
import type { Inspectable } from './inspected-actor.ts';

/** How many actors that have left memory for good are remembered. */
export const MAX_REMEMBERED_ACTORS = 1_000;

/** The facts that are kept of an actor that has left memory. */
export interface RememberedActor extends Inspectable {
  /** The notebook or conversation whose home the actor shared; undefined when it shared the home of its workspace. */
  readonly homeId: string | undefined;
}

/** Remembers the last actors that ended or failed, so that operators can see their history. */
export class RememberedActors {
  /** Oldest first. */
  readonly #actors = new Map<string, RememberedActor>();

  add(address: Address, actor: RememberedActor): void {
    const text = addressText(address);
    this.#actors.delete(text);
    this.#actors.set(text, actor);
    if (this.#actors.size <= MAX_REMEMBERED_ACTORS) return;
    for (const oldest of this.#actors.keys()) {
      this.#actors.delete(oldest);
      return;
    }
  }

  get(address: Address): RememberedActor | undefined {
    return this.#actors.get(addressText(address));
  }

  /** Returns and forgets the record of an actor that comes back. */
  take(address: Address): RememberedActor | undefined {
    const text = addressText(address);
    const actor = this.#actors.get(text);
    this.#actors.delete(text);
    return actor;
  }

  /** Forgets an actor that was deleted. */
  forget(address: Address): void {
    this.#actors.delete(addressText(address));
  }

  /** Forgets actors for which another worker now decides, because they may come back there. */
  leaveTo(isElsewhere: (workspaceId: string, id?: string) => boolean): void {
    for (const [text, { address, homeId }] of this.#actors)
      if (isElsewhere(address.workspaceId, homeId)) this.#actors.delete(text);
  }

  all(): Iterable<Inspectable> {
    return this.#actors.values();
  }
}
