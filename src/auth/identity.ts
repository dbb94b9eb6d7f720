/**
 * All writes of workspaces, members and tokens go through `Identity`. Every write invalidates what was cached about
 * callers, so a revocation or a change of role takes effect on the next request.
 */
import { type Timestamp, timestamp } from '#src/core/clock.ts';
import type { Store, Transaction } from '#storage/store.ts';

export class Identity {
  readonly store: Store;
  readonly #now: () => number;
  readonly #listeners: (() => void)[] = [];
  #revision = 0;

  /** `now` returns milliseconds since 1970. */
  constructor(store: Store, now: () => number = Date.now) {
    this.store = store;
    this.#now = now;
  }

  /** Increases with every write. What was derived at another revision may be wrong. */
  get revision(): number {
    return this.#revision;
  }

  nowMs(): number {
    return this.#now();
  }

  timestamp(): Timestamp {
    return timestamp(this.#now());
  }

  /** Runs `decide` as `Store.write` does, and then calls the listeners. */
  write<T>(decide: (tx: Transaction) => T extends Promise<unknown> ? never : T) {
    this.#revision++;
    const result = this.store.write(decide);
    for (const listener of this.#listeners) listener();
    return result;
  }

  /** Calls `listener` after every write: what an earlier caller has open may have to end. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }
}
