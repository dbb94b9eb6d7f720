import { type Address, addressText } from './address.ts';
import type { Inspectable } from './inspected-actor.ts';

/** How many actors that have left memory for good are remembered. */
export const MAX_REMEMBERED_ACTORS = 1_000;

/** Remembers the actors that ended or failed last, so that operators can see what happened to them. */
export class RememberedActors {
  /** Oldest first. */
  readonly #actors = new Map<string, Inspectable>();

  add(address: Address, actor: Inspectable): void {
    const text = addressText(address);
    this.#actors.delete(text);
    this.#actors.set(text, actor);
    if (this.#actors.size <= MAX_REMEMBERED_ACTORS) return;
    for (const oldest of this.#actors.keys()) {
      this.#actors.delete(oldest);
      return;
    }
  }

  get(address: Address): Inspectable | undefined {
    return this.#actors.get(addressText(address));
  }

  /** Returns what is remembered of an actor that comes back, and forgets it. */
  take(address: Address): Inspectable | undefined {
    const actor = this.get(address);
    this.forget(address);
    return actor;
  }

  /** Forgets an actor that was deleted. */
  forget(address: Address): void {
    this.#actors.delete(addressText(address));
  }

  all(): Iterable<Inspectable> {
    return this.#actors.values();
  }
}
