/**
 * The one door to workspaces, members and tokens. Whatever is written here makes the answers that were remembered
 * about callers void, so a revocation or a change of role acts on the next request.
 */
import { type Timestamp, timestamp } from '#src/core/clock.ts';
import type { Store, Transaction } from '#storage/store.ts';

export class Identity {
  readonly store: Store;
  readonly #now: () => number;
  readonly #listeners: (() => void)[] = [];
  #revision = 0;

  /** `now` gives milliseconds since 1970. */
  constructor(store: Store, now: () => number = Date.now) {
    this.store = store;
    this.#now = now;
  }

  /** Grows with every write: what was worked out at another revision may be wrong. */
  get revision(): number {
    return this.#revision;
  }

  nowMs(): number {
    return this.#now();
  }

  timestamp(): Timestamp {
    return timestamp(this.#now());
  }

  write<T>(decide: (tx: Transaction) => T extends Promise<unknown> ? never : T) {
    this.#revision++;
    const result = this.store.write(decide);
    for (const listener of this.#listeners) listener();
    return result;
  }

  /** Calls `listener` after every write: what is open on the ground of an earlier answer may have to end. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
